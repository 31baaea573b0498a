int beside_at_top;
