// builtins.cpp: the library that the simulated NVRTC of CUDA 13 opens, with nothing in it but a
// proof of what it is.

extern "C" __attribute__((visibility("default"))) int concord_sim_builtins();
extern "C" __attribute__((visibility("default"))) int concord_sim_control(const char *);

int concord_sim_builtins() { return 13; }

// A program takes a library with this symbol for a simulated one.
int concord_sim_control(const char *) { return -1; }
