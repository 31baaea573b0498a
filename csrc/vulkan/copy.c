// copy.c moves and sets memory in stream order.

#include "state.h"

// -- within the device: the caller holds the stream's lock --

static int32_t move(cs_stream *s, VkBuffer to, uint64_t to_offset, VkBuffer from, uint64_t from_offset, uint64_t bytes,
                    cs_error *err) {
  struct recorder *r = NULL;
  int32_t status = recorder_of(s, &r, err);
  if (status != CS_OK)
    return status;
  VkBufferCopy region = {from_offset, to_offset, bytes};
  s->dev->vk.CmdCopyBuffer(r->commands, from, to, 1, &region);
  return queued(s, err);
}

static int32_t move_blocks(cs_stream *s, struct place to, struct place from, uint64_t bytes, cs_error *err) {
  int32_t status = present(s->dev, err);
  if (status == CS_OK && bytes > 0)
    ON(s, status, err, move(s, to.block->buffer, to.offset, from.block->buffer, from.offset, bytes, err));
  return status;
}

static int32_t vulkan_copy(cs_stream *s, uint64_t dst, uint64_t src, uint64_t bytes, cs_error *err) {
  struct place to, from;
  int32_t status = find(s->dev, dst, bytes, &to, err);
  if (status == CS_OK)
    status = find(s->dev, src, bytes, &from, err);
  return status == CS_OK ? move_blocks(s, to, from, bytes, err) : status;
}

static int32_t vulkan_upload_pinned(cs_stream *s, uint64_t dst, uint64_t host, uint64_t bytes, cs_error *err) {
  struct place to, from;
  int32_t status = find(s->dev, dst, bytes, &to, err);
  if (status == CS_OK)
    status = find_in(s->dev, &s->dev->by_host, host, bytes, &from, err);
  return status == CS_OK ? move_blocks(s, to, from, bytes, err) : status;
}

static int32_t vulkan_download_pinned(cs_stream *s, uint64_t host, uint64_t src, uint64_t bytes, cs_error *err) {
  struct place to, from;
  int32_t status = find_in(s->dev, &s->dev->by_host, host, bytes, &to, err);
  if (status == CS_OK)
    status = find(s->dev, src, bytes, &from, err);
  return status == CS_OK ? move_blocks(s, to, from, bytes, err) : status;
}

// -- filling --

// fill_tool returns the pipeline of the kernel that fills; the first call makes it.
static int32_t fill_tool(cs_device *d, VkPipeline *out, cs_error *err) {
  int32_t status = CS_OK;
  const uint32_t constants[5] = {TOOL_GROUP, 1, 1, 1, 0};
  pthread_mutex_lock(&d->tools);
  if (d->fill_code == 0)
    status = make_code(d, (const unsigned char *)fill_words, sizeof fill_words, &d->fill_code, err);
  if (status == CS_OK && d->fill == 0)
    status = make_pipeline(d, d->fill_code, "main", constants, &d->fill, err);
  *out = d->fill;
  pthread_mutex_unlock(&d->tools);
  return status;
}

// SPAN is the number of items of the fill kernel in one dispatch: as many groups as every device allows, a multiple of 8
// items, so that the next one begins with the first byte of the pattern.
#define SPAN ((uint64_t)65535 * TOOL_GROUP)

// span has the push constants of tools/fill.comp.
struct span {
  uint64_t to;
  uint32_t count, unit; // bytes of an item, 1 or 4
  unsigned char pattern[8];
};

static void fill_items(cs_device *d, struct recorder *r, VkPipeline tool, uint64_t to, uint64_t items, uint32_t unit,
                       const unsigned char *pattern) {
  for (uint64_t at = 0; at < items; at += SPAN) {
    uint64_t n = items - at < SPAN ? items - at : SPAN;
    struct span span = {.to = to + at * unit, .count = (uint32_t)n, .unit = unit};
    memcpy(span.pattern, pattern, sizeof span.pattern);
    uint32_t words[sizeof span / 4];
    memcpy(words, &span, sizeof span);
    bind(d, r, tool, words, sizeof span / 4);
    dispatch(d, r->commands, (const uint64_t[3]){(n + TOOL_GROUP - 1) / TOOL_GROUP, 1, 1});
  }
}

// fill_job is a fill: up to 3 bytes before and behind whole words.
struct fill_job {
  struct place to;
  uint64_t address, bytes;
  unsigned char pattern[16]; // twice
  VkPipeline tool;           // or 0, if the driver's command serves
};

static int32_t fill_now(cs_stream *s, const struct fill_job *j, cs_error *err) {
  struct recorder *r = NULL;
  cs_device *d = s->dev;
  int32_t status = recorder_of(s, &r, err);
  if (status != CS_OK)
    return status;
  if (j->tool == 0) {
    uint32_t four;
    memcpy(&four, j->pattern, 4);
    d->vk.CmdFillBuffer(r->commands, j->to.block->buffer, j->to.offset, j->bytes, four);
    return queued(s, err);
  }
  uint64_t head = -j->address & 3;
  if (head > j->bytes)
    head = j->bytes;
  uint64_t words = (j->bytes - head) / 4, tail = j->bytes - head - 4 * words;
  if (head > 0)
    fill_items(d, r, j->tool, j->address, head, 1, j->pattern);
  if (words > 0)
    fill_items(d, r, j->tool, j->address + head, words, 4, j->pattern + head);
  uint64_t end = head + 4 * words;
  if (tail > 0)
    fill_items(d, r, j->tool, j->address + end, tail, 1, j->pattern + end % 8);
  return queued(s, err);
}

static int32_t vulkan_fill(cs_stream *s, uint64_t dst, uint64_t bytes, const unsigned char *pattern,
                           uint64_t pattern_bytes, cs_error *err) {
  struct fill_job j = {.address = dst, .bytes = bytes};
  int32_t status = check_fill(bytes, pattern_bytes, err);
  if (status == CS_OK)
    status = present(s->dev, err);
  if (status == CS_OK)
    status = find(s->dev, dst, bytes, &j.to, err);
  if (status != CS_OK || bytes == 0)
    return status;
  for (uint64_t i = 0; i < sizeof j.pattern; i++)
    j.pattern[i] = pattern[i % pattern_bytes];
  int words = j.to.offset % 4 == 0 && bytes % 4 == 0 && memcmp(j.pattern, j.pattern + 4, 4) == 0;
  if (!words)
    status = fill_tool(s->dev, &j.tool, err);
  if (status == CS_OK)
    ON(s, status, err, fill_now(s, &j, err));
  return status;
}

// Host and device share unified memory, or the device reads the host's: there is nothing to move.
static int32_t vulkan_prefetch(cs_stream *s, uint64_t address, uint64_t bytes, int32_t host, cs_error *err) {
  (void)host;
  struct place p;
  int32_t status = present(s->dev, err);
  return status == CS_OK ? find(s->dev, address, bytes, &p, err) : status;
}

// -- between pageable memory and the device --

// quiet reports whether the stream has nothing that is not done.
static int quiet(cs_stream *s) {
  pthread_mutex_lock(&s->lock);
  look(s);
  int is = s->open == NULL && s->running == NULL;
  pthread_mutex_unlock(&s->lock);
  return is;
}

static int refuses(cs_stream *s, const char *what, int32_t *status, cs_error *err) {
  *status = present(s->dev, err);
  if (*status != CS_OK)
    return 1;
  pthread_mutex_lock(&s->lock);
  int is = s->capture != NULL;
  pthread_mutex_unlock(&s->lock);
  if (is)
    *status = capturing(what, err);
  return is;
}

// stage copies a piece from the host through a chunk to the device, or from the device to a chunk.
static int32_t stage(cs_stream *s, struct place device, const unsigned char *src, uint64_t bytes, struct piece *p,
                     uint64_t *until, cs_error *err) {
  int32_t status = room(s, bytes, p, until, err);
  if (status != CS_OK || *until != 0)
    return status;
  if (src == NULL)
    return move(s, p->buffer, p->offset, device.block->buffer, device.offset, bytes, err);
  memcpy(p->host, src, bytes);
  return move(s, device.block->buffer, device.offset, p->buffer, p->offset, bytes, err);
}

static int32_t vulkan_upload(cs_stream *s, uint64_t dst, const unsigned char *src, uint64_t bytes, cs_error *err) {
  struct place to;
  int32_t status;
  if (refuses(s, "a copy from pageable memory", &status, err))
    return status;
  status = find(s->dev, dst, bytes, &to, err);
  if (status != CS_OK || bytes == 0)
    return status;
  int visible = to.block->host != NULL;
  if (visible && bytes > (uint64_t)CHUNKS * CHUNK_BYTES) // larger than the chunks: wait and copy directly
    status = finish(s, err);
  if (status == CS_OK && visible && quiet(s)) {
    memcpy(to.block->host + (to.offset - to.block->offset), src, bytes);
    return CS_OK;
  }
  while (bytes > 0 && status == CS_OK) {
    uint64_t n = bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES, until;
    struct piece p;
    WAITING(s, status, until, err, stage(s, to, src, n, &p, &until, err));
    to.offset += n;
    src += n;
    bytes -= n;
  }
  return status;
}

// fetch downloads memory that the host cannot read: it queues a piece for each chunk, and copies them.
static int32_t fetch(cs_stream *s, unsigned char *dst, struct place from, uint64_t bytes, cs_error *err) {
  int32_t status = CS_OK;
  while (bytes > 0 && status == CS_OK) {
    struct piece pieces[CHUNKS];
    uint64_t sizes[CHUNKS], until;
    int n = 0;
    for (; n < CHUNKS - 1 && bytes > 0 && status == CS_OK; n++) {
      sizes[n] = bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES;
      WAITING(s, status, until, err, stage(s, from, NULL, sizes[n], &pieces[n], &until, err));
      from.offset += sizes[n];
      bytes -= sizes[n];
    }
    if (status == CS_OK)
      status = finish(s, err);
    for (int i = 0; i < n && status == CS_OK; i++) {
      memcpy(dst, pieces[i].host, sizes[i]);
      dst += sizes[i];
    }
  }
  return status;
}

static int32_t vulkan_download(cs_stream *s, unsigned char *dst, uint64_t src, uint64_t bytes, cs_error *err) {
  struct place from;
  int32_t status;
  if (refuses(s, "a copy to pageable memory", &status, err))
    return status;
  status = find(s->dev, src, bytes, &from, err);
  if (status != CS_OK || bytes == 0)
    return status;
  if (from.block->host == NULL || !from.block->cached)
    return fetch(s, dst, from, bytes, err);
  status = finish(s, err);
  if (status == CS_OK)
    memcpy(dst, from.block->host + (from.offset - from.block->offset), bytes);
  return status;
}
