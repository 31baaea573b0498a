// ccl.c has devices exchange data by the vendor's library of collectives, NCCL or RCCL. Its communicators do not block:
// no call waits for another rank, so that the caller can wait as long as it likes, and abort.

#include "load.h"

static const struct gpu_code ccl_codes[] = {{4, 5, CS_INVALID, 0}, // argument, usage
                                            {6, 6, CS_LAUNCH, 0},  // another rank has failed
                                            {0, 0, 0, 0}};

// ccl_failed returns the error of a call, or of a communicator. comm may be NULL.
static int32_t ccl_failed(cs_device *d, void *comm, int code, size_t at, cs_error *err) {
  const struct ccl_api *api = &d->lib->ccl_api;
  const struct gpu_code *row = code_in(ccl_codes, code);
  int32_t status = row->first != 0 ? row->status : CS_FAILED;
  if (atomic_load(&d->lost))
    status = CS_LOST;
  char call[96];
  const char *why = api->last_error(comm);
  return tell(err, status, code, "%s: %s%s%s", symbol_name(ccl_symbols, at, call, sizeof call),
              api->error_string(code), why != NULL && why[0] != '\0' ? ": " : "",
              why != NULL ? why : "");
}

// begun is ccl_failed for calls that only begin something.
static int32_t begun(cs_device *d, void *comm, int code, size_t at, cs_error *err) {
  return code == 0 || code == CCL_IN_PROGRESS ? CS_OK : ccl_failed(d, comm, code, at, err);
}

static int32_t open_ccl(cs_lib *lib, const char *names, cs_error *err) {
  char tried[160];
  struct gpu_note note = note_in(tried, sizeof tried);
  pthread_mutex_lock(&lib->lock);
  if (lib->ccl == NULL)
    lib->ccl = open_first(lib->vendor, names, ccl_symbols, lib, &note);
  int open = lib->ccl != NULL;
  pthread_mutex_unlock(&lib->lock);
  return open ? CS_OK
              : tell(err, CS_UNSUPPORTED, 0, "%s was not found: %s", lib->vendor->ccl_title, tried);
}

static int32_t gpu_comm_id(cs_device *d, const char *names, unsigned char *id, cs_error *err) {
  int32_t status = enter(d, err);
  if (status == CS_OK)
    status = open_ccl(d->lib, names, err);
  if (status != CS_OK)
    return status;
  struct ccl_id made;
  int code = d->lib->ccl_api.id(&made);
  if (code != 0)
    return ccl_failed(d, NULL, code, CCL(id), err);
  memcpy(id, made.bytes, CS_COMM_ID);
  return CS_OK;
}

static int32_t gpu_comm_join(cs_device *d, const char *names, const unsigned char *id, int32_t rank,
                             int32_t ranks, cs_comm **comm, cs_error *err) {
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return tell(err, CS_INVALID, 0, "rank %d of %d", rank, ranks);
  int32_t status = enter(d, err);
  if (status == CS_OK)
    status = open_ccl(d->lib, names, err);
  if (status != CS_OK)
    return status;
  cs_comm *c = calloc(1, sizeof *c);
  if (c == NULL)
    return no_host_memory(err);
  c->dev = d;
  struct ccl_id of;
  memcpy(of.bytes, id, CS_COMM_ID);
  struct ccl_config config = {sizeof config, 0xcafebeefu, 21400, 0};
  int code = d->lib->ccl_api.join(&c->handle, ranks, of, rank, &config);
  status = begun(d, NULL, code, CCL(join), err);
  if (status != CS_OK) {
    if (c->handle != NULL)
      d->lib->ccl_api.abort(c->handle);
    free(c);
    return status;
  }
  *comm = c;
  return CS_OK;
}

// send_receive begins both at once, since each waits for the other rank's.
static int32_t send_receive(cs_comm *c, void *stream, const cs_collective *w, cs_error *err) {
  cs_device *d = c->dev;
  const struct ccl_api *api = &d->lib->ccl_api;
  int code = api->group_start();
  if (code != 0)
    return ccl_failed(d, c->handle, code, CCL(group_start), err);
  int32_t status = CS_OK;
  if (w->to >= 0)
    status = begun(d, c->handle,
                   api->send((const void *)(uintptr_t)w->src, w->count, w->type, w->to, c->handle,
                             stream),
                   CCL(send), err);
  if (w->from >= 0 && status == CS_OK)
    status = begun(d, c->handle,
                   api->receive((void *)(uintptr_t)w->dst, w->received, w->type, w->from,
                                c->handle, stream),
                   CCL(receive), err);
  code = api->group_end();
  return status != CS_OK ? status : begun(d, c->handle, code, CCL(group_end), err);
}

static int32_t gpu_comm_queue(cs_comm *c, cs_stream *s, const cs_collective *w, cs_error *err) {
  cs_device *d = c->dev;
  const struct ccl_api *api = &d->lib->ccl_api;
  if (s->dev != d)
    return tell(err, CS_INVALID, 0, "the stream is one of another device");
  if (w->type < 0 || w->type > 9 || w->op < 0 || w->op > 3)
    return tell(err, CS_INVALID, 0, "no collective of type %d, operation %d", w->type, w->op);
  int32_t status = enter(d, err);
  if (status != CS_OK)
    return status;
  const void *src = (const void *)(uintptr_t)w->src;
  void *dst = (void *)(uintptr_t)w->dst, *comm = c->handle, *on = s->handle;
  switch (w->kind) {
  case CS_ALL_REDUCE:
    return begun(d, comm, api->all_reduce(src, dst, w->count, w->type, w->op, comm, on),
                 CCL(all_reduce), err);
  case CS_REDUCE:
    return begun(d, comm, api->reduce(src, dst, w->count, w->type, w->op, w->root, comm, on),
                 CCL(reduce), err);
  case CS_BROADCAST:
    return begun(d, comm, api->broadcast(src, dst, w->count, w->type, w->root, comm, on),
                 CCL(broadcast), err);
  case CS_ALL_GATHER:
    return begun(d, comm, api->all_gather(src, dst, w->count, w->type, comm, on), CCL(all_gather),
                 err);
  case CS_REDUCE_SCATTER:
    return begun(d, comm, api->reduce_scatter(src, dst, w->count, w->type, w->op, comm, on),
                 CCL(reduce_scatter), err);
  case CS_SEND_RECEIVE:
    return send_receive(c, on, w, err);
  }
  return tell(err, CS_INVALID, 0, "no collective of kind %d", w->kind);
}

static int32_t gpu_comm_state(cs_comm *c, int32_t *done, cs_error *err) {
  cs_device *d = c->dev;
  int32_t status = enter(d, err);
  if (status != CS_OK)
    return status;
  int now = 0, code = d->lib->ccl_api.state(c->handle, &now);
  if (code == 0)
    code = now;
  status = begun(d, c->handle, code, CCL(state), err);
  if (status == CS_OK)
    *done = code == 0;
  return status;
}

static int32_t gpu_comm_abort(cs_comm *c, cs_error *err) {
  cs_device *d = c->dev;
  cs_error ignored;
  enter(d, &ignored); // a lost device's communicator is released as well
  int code = d->lib->ccl_api.abort(c->handle);
  free(c);
  return code == 0 ? CS_OK : ccl_failed(d, NULL, code, CCL(abort), err);
}
