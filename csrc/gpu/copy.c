// copy.c moves and sets memory in stream order.

#include "load.h"

// -- the ring of pinned memory --

static void drop_ring(cs_stream *s) {
  for (int i = 0; i < CHUNKS; i++)
    if (s->ring[i].passed != NULL)
      s->dev->lib->api.event_destroy(s->ring[i].passed);
  // Where no end of a context frees the memory later, a call that fails is repeated once.
  if (s->pinned != NULL && s->dev->lib->api.host_free(s->pinned) != 0 &&
      !s->dev->lib->vendor->context_frees)
    s->dev->lib->api.host_free(s->pinned);
  memset(s->ring, 0, sizeof s->ring);
  s->pinned = NULL;
  s->at = 0;
}

// make_ring allocates the ring; it is called by the first copy.
static int32_t make_ring(cs_stream *s, cs_error *err) {
  cs_device *d = s->dev;
  if (s->pinned != NULL)
    return CS_OK;
  void *host = NULL;
  int32_t status = CALL(d, err, host_alloc, &host, (size_t)CHUNKS * CHUNK_BYTES, HOST_PORTABLE);
  if (status != CS_OK)
    return status;
  s->pinned = host;
  for (int i = 0; i < CHUNKS && status == CS_OK; i++) {
    s->ring[i].at = s->pinned + (size_t)i * CHUNK_BYTES;
    status = CALL(d, err, event_create, &s->ring[i].passed, DISABLE_TIMING);
  }
  if (status != CS_OK)
    drop_ring(s);
  return status;
}

// settle waits for the copies that use a chunk.
static int32_t settle(cs_stream *s, struct chunk *c, cs_error *err) {
  int32_t status = c->busy ? CALL(s->dev, err, event_sync, c->passed) : CS_OK;
  if (status == CS_OK)
    c->busy = 0;
  return status;
}

// room returns a chunk with that many free bytes: the current one, or the next one after it waited
// for the copies that use it.
static int32_t room(cs_stream *s, uint64_t bytes, struct chunk **out, cs_error *err) {
  struct chunk *c = &s->ring[s->at];
  if (CHUNK_BYTES - c->used < bytes) {
    s->at = (s->at + 1) % CHUNKS;
    c = &s->ring[s->at];
    int32_t status = settle(s, c, err);
    if (status != CS_OK)
      return status;
    c->used = 0;
  }
  *out = c;
  return CS_OK;
}

// mark records that the next n bytes of a chunk are in use until the stream has reached this point.
static int32_t mark(cs_stream *s, struct chunk *c, uint64_t n, cs_error *err) {
  c->used = (c->used + n + 63) & ~(uint64_t)63; // the next copy begins at a cache line
  int32_t status = CALL(s->dev, err, event_record, c->passed, s->handle);
  if (status == CS_OK)
    c->busy = 1;
  else // without the event the end is unknown: wait now
    s->dev->lib->api.stream_sync(s->handle);
  return status;
}

// -- between pageable memory and the device --

static int32_t gpu_upload(cs_stream *s, uint64_t dst, const unsigned char *src, uint64_t bytes,
                          cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("a copy from pageable memory", err);
  cs_device *d = s->dev;
  int32_t status = enter(d, err);
  if (status != CS_OK || bytes == 0)
    return status;
  if (make_ring(s, err) != CS_OK) {
    if (atomic_load(&d->lost))
      return err->status;
    status = CALL(d, err, upload, dst, src, bytes, s->handle);
    return status != CS_OK ? status : CALL(d, err, stream_sync, s->handle);
  }
  while (bytes > 0 && status == CS_OK) {
    uint64_t n = bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES;
    struct chunk *c;
    status = room(s, n, &c, err);
    if (status != CS_OK)
      break;
    memcpy(c->at + c->used, src, n);
    status = CALL(d, err, upload, dst, c->at + c->used, n, s->handle);
    if (status == CS_OK)
      status = mark(s, c, n, err);
    dst += n;
    src += n;
    bytes -= n;
  }
  return status;
}

// fetch queues one piece of a download to the next chunk.
static int32_t fetch(cs_stream *s, uint64_t src, uint64_t n, cs_error *err) {
  struct chunk *c;
  s->ring[s->at].used = CHUNK_BYTES; // the piece does not share its chunk
  int32_t status = room(s, CHUNK_BYTES, &c, err);
  if (status == CS_OK)
    status = CALL(s->dev, err, download, c->at, src, n, s->handle);
  return status != CS_OK ? status : mark(s, c, CHUNK_BYTES, err);
}

static int32_t gpu_download(cs_stream *s, unsigned char *dst, uint64_t src, uint64_t bytes,
                            cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("a copy to pageable memory", err);
  cs_device *d = s->dev;
  int32_t status = enter(d, err);
  if (status != CS_OK || bytes == 0)
    return status;
  if (make_ring(s, err) != CS_OK) {
    if (atomic_load(&d->lost))
      return err->status;
    status = CALL(d, err, download, dst, src, bytes, s->handle);
    return status != CS_OK ? status : CALL(d, err, stream_sync, s->handle);
  }
  uint64_t asked = 0, got = 0;
  int oldest = (s->at + 1) % CHUNKS;
  while (got < bytes && status == CS_OK) {
    if (asked < bytes && asked - got < (uint64_t)CHUNKS * CHUNK_BYTES) {
      uint64_t n = bytes - asked < CHUNK_BYTES ? bytes - asked : CHUNK_BYTES;
      status = fetch(s, src + asked, n, err);
      asked += n;
      continue;
    }
    uint64_t n = bytes - got < CHUNK_BYTES ? bytes - got : CHUNK_BYTES;
    status = settle(s, &s->ring[oldest], err);
    if (status == CS_OK)
      memcpy(dst + got, s->ring[oldest].at, n);
    got += n;
    oldest = (oldest + 1) % CHUNKS;
  }
  return status;
}

// -- between memory that the device can access --

static int32_t gpu_upload_pinned(cs_stream *s, uint64_t dst, uint64_t host, uint64_t bytes,
                                 cs_error *err) {
  int32_t status = enter(s->dev, err);
  if (status != CS_OK || bytes == 0)
    return status;
  return CALL(s->dev, err, upload, dst, (const void *)(uintptr_t)host, bytes, s->handle);
}

static int32_t gpu_download_pinned(cs_stream *s, uint64_t host, uint64_t src, uint64_t bytes,
                                   cs_error *err) {
  int32_t status = enter(s->dev, err);
  if (status != CS_OK || bytes == 0)
    return status;
  return CALL(s->dev, err, download, (void *)(uintptr_t)host, src, bytes, s->handle);
}

static int32_t gpu_copy(cs_stream *s, uint64_t dst, uint64_t src, uint64_t bytes, cs_error *err) {
  int32_t status = enter(s->dev, err);
  if (status != CS_OK || bytes == 0)
    return status;
  return CALL(s->dev, err, copy, dst, src, bytes, s->handle);
}

static int32_t gpu_copy_peer(cs_stream *s, cs_device *to, uint64_t dst, cs_device *from,
                             uint64_t src, uint64_t bytes, cs_error *err) {
  if (to->lib->api.copy_peer == NULL)
    return lacks(to->lib, API(copy_peer), err);
  int32_t status = enter(to, err);
  if (status != CS_OK || bytes == 0)
    return status;
  int code = to->lib->vendor->copy_peer(s, to, dst, from, src, bytes);
  return on_device(to, code, API(copy_peer), err);
}

static int32_t gpu_peer(cs_device *to, cs_device *from, int32_t enable, int32_t *can,
                        cs_error *err) {
  int yes = 1;
  if (to->handle != from->handle) {
    if (to->lib->api.can_access_peer == NULL)
      return lacks(to->lib, API(can_access_peer), err);
    int32_t status = CALL(to, err, can_access_peer, &yes, to->handle, from->handle);
    if (status == CS_OK && yes && enable) {
      if (to->lib->api.enable_peer == NULL)
        return lacks(to->lib, API(enable_peer), err);
      status = enter(to, err);
      int code = 0;
      if (status == CS_OK)
        code = to->lib->vendor->enable_peer(to, from);
      if (code != PEER_ALREADY_ENABLED)
        status = status != CS_OK ? status : on_device(to, code, API(enable_peer), err);
    }
    if (status != CS_OK)
      return status;
  }
  *can = yes != 0;
  return CS_OK;
}

static int32_t gpu_prefetch(cs_stream *s, uint64_t address, uint64_t bytes, int32_t host,
                            cs_error *err) {
  cs_device *d = s->dev;
  if ((d->lib->api.prefetch_to == NULL && d->lib->api.prefetch == NULL) || !d->managed)
    return tell(err, CS_UNSUPPORTED, 0, "this device cannot prefetch managed memory");
  int32_t status = enter(d, err);
  if (status != CS_OK || bytes == 0)
    return status;
  struct gpu_place to = {host ? PLACE_HOST : PLACE_DEVICE, host ? 0 : d->handle};
  if (d->lib->api.prefetch_to != NULL)
    return CALL(d, err, prefetch_to, address, bytes, to, 0, s->handle);
  return CALL(d, err, prefetch, address, bytes, host ? DEVICE_CPU : d->handle, s->handle);
}

// -- filling --

// shorten returns the length of the shortest pattern that repeats to the same bytes.
static uint64_t shorten(const unsigned char *pattern, uint64_t n) {
  while (n > 1 && memcmp(pattern, pattern + n / 2, n / 2) == 0)
    n /= 2;
  return n;
}

// set writes count copies of a unit of 1, 2 or 4 bytes, pitch bytes apart.
static int32_t set(cs_stream *s, uint64_t dst, const unsigned char *unit, uint64_t n,
                   uint64_t pitch, uint64_t count, cs_error *err) {
  cs_device *d = s->dev;
  uint32_t value = 0;
  memcpy(&value, unit, n); // little-endian, as every host of these drivers is
  int dense = pitch == n;
  switch (n) {
  case 1:
    return dense
               ? CALL(d, err, set8, dst, (unsigned char)value, count, s->handle)
               : CALL(d, err, set8_strided, dst, pitch, (unsigned char)value, 1, count, s->handle);
  case 2:
    return dense ? CALL(d, err, set16, dst, (unsigned short)value, count, s->handle)
                 : CALL(d, err, set16_strided, dst, pitch, (unsigned short)value, 1, count,
                        s->handle);
  }
  return dense ? CALL(d, err, set32, dst, value, count, s->handle)
               : CALL(d, err, set32_strided, dst, pitch, value, 1, count, s->handle);
}

// weave fills memory that a plain fill cannot: with a pattern of 8 bytes, or aligned to less than
// the pattern. The first copies are set unit by unit, and the filled part is then doubled
// repeatedly.
static int32_t weave(cs_stream *s, uint64_t dst, uint64_t bytes, const unsigned char *pattern,
                     uint64_t n, cs_error *err) {
  cs_device *d = s->dev;
  uint64_t unit = n < 4 ? n : 4, seed = 4096;
  while (unit > 1 && dst % unit != 0)
    unit /= 2;
  int strided = d->lib->api.set8_strided != NULL && d->lib->api.set16_strided != NULL &&
                d->lib->api.set32_strided != NULL;
  if (!strided)
    seed = 1;
  if (seed > bytes / n)
    seed = bytes / n;
  for (uint64_t i = 0; i < n; i += unit) {
    // With a single unit the pitch does not matter.
    int32_t status = set(s, dst + i, pattern + i, unit, seed == 1 ? unit : n, seed, err);
    if (status != CS_OK)
      return status;
  }
  for (uint64_t have = seed * n; have < bytes;) {
    uint64_t more = have < bytes - have ? have : bytes - have;
    int32_t status = CALL(d, err, copy, dst + have, dst, more, s->handle);
    if (status != CS_OK)
      return status;
    have += more;
  }
  return CS_OK;
}

static int32_t gpu_fill(cs_stream *s, uint64_t dst, uint64_t bytes, const unsigned char *pattern,
                        uint64_t pattern_bytes, cs_error *err) {
  int32_t status = check_fill(bytes, pattern_bytes, err);
  if (status == CS_OK)
    status = enter(s->dev, err);
  if (status != CS_OK || bytes == 0)
    return status;
  uint64_t n = shorten(pattern, pattern_bytes);
  if (n <= 4 && dst % n == 0)
    return set(s, dst, pattern, n, n, bytes / n, err);
  return weave(s, dst, bytes, pattern, n, err);
}
