// hip.h: functions that only HIP has, or that have other names in CUDA. Functions without a mask
// apply to the active lanes.

static inline unsigned __lane_id() { return __sim_me->lane; }
static inline void __syncwarp() { __sim_exchange(__SIM_SYNC, 0, 0, 0); }
template <class T> static inline T __shfl(T v, int src, int width = __SIM_WARP) {
  return __sim_shuffle(0, v, __sim_idx(src, width));
}
template <class T> static inline T __shfl_up(T v, unsigned d, int width = __SIM_WARP) {
  return __sim_shuffle(0, v, __sim_up(d, width));
}
template <class T> static inline T __shfl_down(T v, unsigned d, int width = __SIM_WARP) {
  return __sim_shuffle(0, v, __sim_down(d, width));
}
template <class T> static inline T __shfl_xor(T v, int m, int width = __SIM_WARP) {
  return __sim_shuffle(0, v, __sim_xor(m, width));
}
static inline unsigned long long __ballot(int p) {
  return __sim_exchange(__SIM_BALLOT, 0, p ? 1ull << __sim_me->lane : 0, 0);
}
static inline int __any(int p) { return (int)__sim_exchange(__SIM_OR, 0, p != 0, 0); }
static inline int __all(int p) { return (int)__sim_exchange(__SIM_AND, 0, p != 0, 0); }
static inline unsigned long long __activemask() { return __ballot(1); }

// Compilers for AMD have these as built-ins; with clamp a sum that does not fit saturates, which is not simulated.
static inline unsigned __builtin_amdgcn_udot4(unsigned a, unsigned b, unsigned c, bool) {
  for (int k = 0; k < 32; k += 8)
    c += (a >> k & 255) * (b >> k & 255);
  return c;
}
static inline int __builtin_amdgcn_sdot4(int a, int b, int c, bool) {
  for (int k = 0; k < 32; k += 8)
    c += (int)(signed char)(a >> k) * (int)(signed char)(b >> k);
  return c;
}

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;

#define hipThreadIdx_x threadIdx.x
#define hipThreadIdx_y threadIdx.y
#define hipThreadIdx_z threadIdx.z
#define hipBlockIdx_x blockIdx.x
#define hipBlockIdx_y blockIdx.y
#define hipBlockIdx_z blockIdx.z
#define hipBlockDim_x blockDim.x
#define hipBlockDim_y blockDim.y
#define hipBlockDim_z blockDim.z
#define hipGridDim_x gridDim.x
#define hipGridDim_y gridDim.y
#define hipGridDim_z gridDim.z
