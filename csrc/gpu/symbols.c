// symbols.c has the table of the functions of NCCL and RCCL. A library without communicators that do not block is of
// no use: NCCL before 2.14, RCCL before ROCm 5.5.

#include "load.h"

static const struct gpu_symbol ccl_symbols[] = {
    {"ncclGetVersion", CCL(version), REQUIRED},
    {"ncclGetErrorString", CCL(error_string), REQUIRED},
    {"ncclGetLastError", CCL(last_error), REQUIRED},
    {"ncclGetUniqueId", CCL(id), REQUIRED},
    {"ncclCommInitRankConfig", CCL(join), REQUIRED},
    {"ncclCommGetAsyncError", CCL(state), REQUIRED},
    {"ncclCommAbort", CCL(abort), REQUIRED},
    {"ncclAllReduce", CCL(all_reduce), REQUIRED},
    {"ncclReduce", CCL(reduce), REQUIRED},
    {"ncclBroadcast", CCL(broadcast), REQUIRED},
    {"ncclAllGather", CCL(all_gather), REQUIRED},
    {"ncclReduceScatter", CCL(reduce_scatter), REQUIRED},
    {"ncclSend", CCL(send), REQUIRED},
    {"ncclRecv", CCL(receive), REQUIRED},
    {"ncclGroupStart", CCL(group_start), REQUIRED},
    {"ncclGroupEnd", CCL(group_end), REQUIRED},
    {NULL, 0, OPTIONAL}};
