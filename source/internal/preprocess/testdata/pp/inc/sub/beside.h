int beside_in_sub;
