// Strings, tables of pointers, printf with every kind of argument, character arrays.
// run: kernel=st global=2 args=out:i32:16
// want: 8 65 3 23 97 97 89004 105 8 65 8 23 97 97 89004 105
constant char *constant names[] = {"zero", "one", "two" "three"};
constant int small[] = {1, 2, 3}, big[] = {10, 20};
constant int *constant tables[2] = {small, big + 1};
constant char greek[3][6] = {"alpha", "beta", {'g', 'a'}};
int len(constant char *s) { int n = 0; while (s[n]) ++n; return n; }
kernel void st(global int *out) {
  int i = get_global_id(0); global int *o = out + i * 8; constant char *s = "ab\tc\x41\101\"\\";
  o[0] = len(s); o[1] = s[4]; o[2] = len(names[i + 1]); o[3] = tables[1][0] + tables[0][2]; o[4] = greek[1][3]; o[5] = greek[2][1] + greek[2][2];
  char buf[] = "xyz"; buf[1] = 'Y'; o[6] = buf[1] * 1000 + sizeof(buf); const char fix[2] = "hi"; o[7] = fix[1];
  if (i == 99) { printf("%d %s %v4f %lu %c%%\n", i, "str", (float4)(1), 5UL, 'c'); printf("plain\n"); printf("%f %p %v2hd", 1.5f, o, (short2)(1, 2)); }
}
