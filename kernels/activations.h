// Activations of 8 bits, for products with weights of few bits.
#ifndef CONCORD_ACTIVATIONS_H
#define CONCORD_ACTIVATIONS_H

// The float next to 127 / m, of a device that divides with an error of a few units in the last place: that with the smallest rest.
float scale_of(float m) {
  float near = 127.0f / m, best = near, rest = INFINITY;
  for (int d = -3; d <= 3; d++) {
    float s = as_float(as_int(near) + d), e = fabs(fma(-s, m, 127.0f));
    best = e < rest ? s : best;
    rest = e < rest ? e : rest;
  }
  return best;
}

#endif
