// Enums: implicit conversions, typedefs, in switches, arithmetic, negative values.
// run: kernel=en global=4 args=out:i32:24
// want: 7 133 41 1 8 5100 8 123 51 1 8 5100 9 133 61 1 8 5100 10 133 71 1 8 5100
typedef enum { RED, GREEN = 5, BLUE } color;
enum mode { NEG = -2, ZERO = 0, BIG = 1 << 20, SUM = GREEN + BLUE };
color next(color c) { return c + 1; }
int kind(enum mode m) { switch (m) { case NEG: return 1; case BIG: return 2; case SUM: return 3; default: return 0; } }
kernel void en(global int *o) {
  int i = get_global_id(0); color c = i; enum mode m = -2; c = 5; c++;
  o[i * 6] = next(i) + c; o[i * 6 + 1] = kind(m) * 100 + kind(i == 1 ? BIG : SUM) * 10 + kind(11); o[i * 6 + 2] = m < 0; o[i * 6 + 3] = (color)i < RED - 1; o[i * 6 + 4] = sizeof(color) + sizeof(enum mode);
  int t[BLUE] = {[GREEN] = 4}; o[i * 6 + 5] = t[GREEN] | c << 4; float f = GREEN; o[i * 6 + 5] += f * 1000; m = i; m |= 4; o[i * 6 + 2] += m * 10;
}
