// A user's function with the name of a built-in is called, whatever its parameters.
// host only: OpenCL compilers require overloadable if their header declares the built-in
// run: kernel=uw global=1 args=out:i32:4
// want: 1002 7 3 12
int max(int a, int b) { return a * 1000 + b; }
float clamp(float x) { return x + 1; }
int dot(int a, int b) { return a + b; }
float mix(float a, float b, float c) { return a * b * c; }
kernel void uw(global int *o) { o[0] = max(1, 2); o[1] = clamp(6); o[2] = dot(1, 2); o[3] = mix(2, 2, 3); }
