// Bit rotation, MD5-like rounds by macro, byte buffers read as words, xorshift, 64-bit mixing.
// run: kernel=hash global=4 args=out:u32:16,out:u64:8
// want: 138745638 2958632332 3102216242 370344226 138745638 2958960012 3102066927 3107876131 138745638 2959025548 3101936524 1763043407 138753830 1885087117 3135411800 209552746
// want: 0 863163 6238072747940578789 592400 15839785061582574730 758270 2185194620014831856 60597
#define ROTL(x, c) (((x) << (c)) | ((x) >> (32 - (c))))
#define F(x, y, z) ((x & y) | ((~x) & z))
#define ROUND(w, r, k, a, b, c, d, f) { a = a + f(b, c, d) + k + w; uint temp = d; d = c; c = b; b = b + ROTL(a, r); a = temp; }
inline ulong mix64(ulong z) { z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9UL; z = (z ^ (z >> 27)) * 0x94d049bb133111ebul; return z ^ (z >> 31); }
typedef struct { uint x, y, z, w; } state;
uint next(state *s) { uint t = s->x ^ (s->x << 11); s->x = s->y; s->y = s->z; s->z = s->w; return s->w = s->w ^ (s->w >> 19) ^ (t ^ (t >> 8)); }
uint2 philox(uint2 c, uint k) { uint hi = mul_hi(0xD256D193u, c.x), lo = 0xD256D193u * c.x; return (uint2)(hi ^ k ^ c.y, lo); }
kernel void hash(global uint *o, global ulong *l) {
  int i = get_global_id(0); unsigned char key[8] = {1, 2, 3, 0, 0, 0, 0, 0}; key[3] = i; key[0]--; ++key[7];
  unsigned int *w = (unsigned int *)key; uint a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476;
  ROUND(w[0], 7, 0xd76aa478, a, b, c, d, F); ROUND(w[1], 12, 0xe8c7b756, d, a, b, c, F); ROUND(0, 17, 0x242070db, c, d, a, b, F);
  o[i * 4] = a + b; o[i * 4 + 1] = c ^ d;
  state s = {1 + i, 362436069, 521288629, 88675123}; uint r = 0; for (int k = 0; k < 9; k++) r += next(&s); o[i * 4 + 2] = r;
  uint2 p = (uint2)(i, 7); for (int k = 0; k < 10; k++) p = philox(p, k * 0x9E3779B9u); o[i * 4 + 3] = p.x + p.y + rotate(p.x, (uint)i);
  l[i * 2] = mix64(i); l[i * 2 + 1] = mix64(~(ulong)i) % 1000003;
}
