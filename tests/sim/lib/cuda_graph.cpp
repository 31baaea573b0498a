// cuda_graph.cpp: libcuda's graphs.

#include "cuda.h"

using namespace sim;

SIM_EXPORT CUresult cuGraphCreate(CUgraph *out, unsigned flags) {
  CU(K_GRAPH, INIT);
  NEED(out && flags == 0);
  Lock lock(world().mu);
  *out = new Graph;
  world().graphs.insert(*out);
  return OK;
}

// Like the vendor's, a destroying call that fails has destroyed the object: the error comes from
// earlier work.
SIM_EXPORT CUresult cuGraphDestroy(CUgraph g) {
  NEED(graph_destroy(g) == OK);
  CU(K_OTHER, INIT);
  return OK;
}

// owned reports whether a node belongs to a graph, finished or being recorded.
static bool owned(Lock &, CUgraphNode n) {
  for (Graph *g : world().graphs)
    for (auto &own : g->nodes)
      if (own.get() == n)
        return true;
  for (auto &cap : world().capturing)
    for (auto &own : cap->graph->nodes)
      if (own.get() == n)
        return true;
  return false;
}

static CUresult add(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t count, Node n) {
  Lock lock(world().mu);
  NEED(out && graph_known(lock, g) && (count == 0 || after));
  std::vector<GraphNode *> before(after, after + count);
  for (GraphNode *b : before)
    NEED(owned(lock, b) && b->graph == g);
  *out = graph_add(g, std::move(n), before);
  return OK;
}

static CUresult prepare(Context *c, const CUDA_KERNEL_NODE_PARAMS *p, Node *out) {
  NEED(p);
  const unsigned grid[] = {p->gridDimX, p->gridDimY, p->gridDimZ},
                 block[] = {p->blockDimX, p->blockDimY, p->blockDimZ};
  return launch_prepare(c, p->func, grid, block, p->sharedMemBytes, p->kernelParams, p->extra, out);
}

SIM_EXPORT CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after,
                                         size_t count, const CUDA_KERNEL_NODE_PARAMS *params) {
  CU(K_GRAPH, CONTEXT);
  Node n;
  if (int code = prepare(ctx, params, &n))
    return code;
  return add(out, g, after, count, std::move(n));
}

SIM_EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after,
                                        size_t count) {
  CU(K_GRAPH, INIT);
  return add(out, g, after, count, Node());
}

SIM_EXPORT CUresult cuGraphNodeGetType(CUgraphNode n, int *type) {
  CU(K_OTHER, INIT);
  Lock lock(world().mu);
  NEED(type && owned(lock, n));
  *type = n->node.type;
  return OK;
}

SIM_EXPORT CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *count) {
  CU(K_OTHER, INIT);
  Lock lock(world().mu);
  NEED(count && graph_known(lock, g));
  size_t n = 0;
  for (auto &own : g->nodes) {
    if (nodes != nullptr && n < *count)
      nodes[n] = own.get();
    n++;
  }
  for (size_t i = n; nodes != nullptr && i < *count; i++)
    nodes[i] = nullptr;
  *count = n;
  return OK;
}

// The arguments that it returns are addresses inside the node.
SIM_EXPORT CUresult cuGraphKernelNodeGetParams(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p) {
  CU(K_OTHER, INIT);
  Lock lock(world().mu);
  NEED(p && owned(lock, n) && n->node.type == NODE_KERNEL);
  static thread_local std::vector<void *> args;
  args.clear();
  size_t at = 0;
  for (uint32_t size : n->node.kernel->sizes) {
    at = (at + 15) / 16 * 16;
    args.push_back(n->node.params.data() + at);
    at += size;
  }
  *p = {n->node.function, n->node.grid[0],  n->node.grid[1],  n->node.grid[2],
        n->node.block[0], n->node.block[1], n->node.block[2], static_cast<unsigned>(n->node.shared),
        args.data(),      nullptr};
  return OK;
}

SIM_EXPORT CUresult cuGraphKernelNodeSetParams(CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *p) {
  CU(K_GRAPH, CONTEXT);
  Node fresh;
  if (int code = prepare(ctx, p, &fresh))
    return code;
  Lock lock(world().mu);
  NEED(owned(lock, n) && n->node.type == NODE_KERNEL);
  n->node = std::move(fresh);
  return OK;
}

SIM_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long) {
  CU(K_GRAPH, CONTEXT);
  NEED(out);
  return graph_instantiate(ctx, g, out);
}

SIM_EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph g, CUgraphNode *, char *log,
                                          size_t room) {
  if (log != nullptr && room > 0)
    *log = 0;
  return cuGraphInstantiateWithFlags(out, g, 0);
}

SIM_EXPORT CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph g, CUgraphNode *node, char *log,
                                       size_t room) {
  return cuGraphInstantiate_v2(out, g, node, log, room);
}

SIM_EXPORT CUresult cuGraphExecKernelNodeSetParams(CUgraphExec e, CUgraphNode n,
                                                   const CUDA_KERNEL_NODE_PARAMS *p) {
  CU(K_GRAPH, CONTEXT);
  Node fresh;
  if (int code = prepare(ctx, p, &fresh))
    return code;
  Lock lock(world().mu);
  NEED(world().execs.count(e) > 0);
  for (size_t i = 0; i < e->origin.size(); i++)
    if (e->origin[i] == n) {
      NEED(e->nodes[i].type == NODE_KERNEL && e->nodes[i].kernel == fresh.kernel);
      e->nodes[i] = std::move(fresh);
      return OK;
    }
  return INVALID_VALUE;
}

struct CUgraphExecUpdateResultInfo {
  int result;
  CUgraphNode errorNode, errorFromNode;
};

SIM_EXPORT CUresult cuGraphExecUpdate(CUgraphExec e, CUgraph g, CUgraphNode *node, int *result) {
  CU(K_GRAPH, CONTEXT);
  NEED(result);
  if (node != nullptr)
    *node = nullptr;
  return graph_update(e, g, result);
}

SIM_EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec e, CUgraph g,
                                         CUgraphExecUpdateResultInfo *info) {
  CU(K_GRAPH, CONTEXT);
  NEED(info);
  *info = {};
  return graph_update(e, g, &info->result);
}

SIM_EXPORT CUresult cuGraphUpload(CUgraphExec e, CUstream) {
  CU(K_GRAPH, CONTEXT);
  Lock lock(world().mu);
  return world().execs.count(e) > 0 ? OK : INVALID_VALUE;
}

SIM_EXPORT CUresult cuGraphLaunch(CUgraphExec e, CUstream s) {
  CU(K_LAUNCH, CONTEXT);
  return graph_launch(ctx, e, s);
}

SIM_EXPORT CUresult cuGraphExecDestroy(CUgraphExec e) {
  NEED(exec_destroy(e) == OK);
  CU(K_OTHER, INIT);
  return OK;
}
