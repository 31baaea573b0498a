// vulkan.c is the shim for Vulkan: the table of csrc/shim.h over version 1.3 of the API, which is opened
// at run time. It is one translation unit of several parts, in which everything is static except the
// function at the end.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE // dladdr
#endif

#include "state.h"
#include "tools.h"

// Each part uses only the parts above it, but for what it declares.
// clang-format off
#include "load.c"
#include "device.c"
#include "memory.c"
#include "batch.c"
#include "stream.c"
#include "event.c"
#include "module.c"
#include "kernel.c"
#include "graph.c"
#include "copy.c"
#include "facts.c"
#include "cache.c"
// clang-format on

// drop_device ends a device and all that is left of it.
static void drop_device(cs_device *d) {
  pthread_mutex_lock(&d->lock);
  d->closing = 1;
  int pumping = d->pumping;
  pthread_cond_signal(&d->left);
  pthread_mutex_unlock(&d->lock);
  if (pumping)
    pthread_join(d->pump, NULL);
  if (d->handle != NULL) {
    wait_idle(d);
    while (d->queries.closed != NULL) {
      cs_event *e = d->queries.closed;
      d->queries.closed = e->next;
      release_stream(e->stream);
      free(e);
    }
    for (struct dead *dead = d->dead, *next; dead != NULL; dead = next) {
      next = dead->next;
      dead->end(d, dead);
    }
    for (uint32_t i = 0; i < d->queries.pools_count; i++)
      d->vk.DestroyQueryPool(d->handle, d->queries.pools[i], NULL);
    d->vk.DestroyPipeline(d->handle, d->fill, NULL);
    d->vk.DestroyShaderModule(d->handle, d->fill_code, NULL);
    d->vk.DestroyPipelineCache(d->handle, d->cache, NULL);
    d->vk.DestroyPipelineLayout(d->handle, d->layout, NULL);
    d->vk.DestroyDevice(d->handle, NULL);
  }
  free(d->queries.pools);
  free(d->queries.free);
  free(d->by_address.list);
  free(d->by_host.list);
  pthread_mutex_destroy(&d->submit);
  pthread_rwlock_destroy(&d->memory);
  pthread_mutex_destroy(&d->lock);
  pthread_cond_destroy(&d->left);
  pthread_mutex_destroy(&d->tools);
  free(d);
}

static int32_t vulkan_device_close(cs_device *d, cs_error *err) {
  (void)err;
  drop_device(d);
  return CS_OK;
}

// Vulkan has no call that tells occupancy. Memory of other devices is not shared. Queues belong to a device that the
// program made, so that none can be wrapped.
static const concord_shim vulkan_shim = {
    .open = vulkan_open,
    .has_driver = vulkan_has_driver,
    .has_compiler = vulkan_has_compiler,
    .missing = vulkan_missing,
    .versions = vulkan_versions,
    .device_count = vulkan_device_count,
    .device_info = vulkan_device_info,
    .blob_free = free_blob,
    .device_open = vulkan_device_open,
    .device_close = vulkan_device_close,
    .device_handles = vulkan_device_handles,
    .memory_info = vulkan_memory_info,
    .alloc = vulkan_alloc,
    .free = vulkan_free,
    .module_load = vulkan_module_load,
    .module_unload = vulkan_module_unload,
    .module_kernel = vulkan_module_kernel,
    .stream_new = vulkan_stream_new,
    .stream_handle = vulkan_stream_handle,
    .stream_close = vulkan_stream_close,
    .upload = vulkan_upload,
    .download = vulkan_download,
    .upload_pinned = vulkan_upload_pinned,
    .download_pinned = vulkan_download_pinned,
    .copy = vulkan_copy,
    .fill = vulkan_fill,
    .prefetch = vulkan_prefetch,
    .launch = vulkan_launch,
    .stream_wait = vulkan_stream_wait,
    .stream_query = vulkan_stream_query,
    .stream_sync = finish,
    .record = vulkan_record,
    .event_query = vulkan_event_query,
    .event_wait = vulkan_event_wait,
    .event_elapsed = vulkan_event_elapsed,
    .event_close = vulkan_event_close,
    .capture_begin = vulkan_capture_begin,
    .capture_end = vulkan_capture_end,
    .capture_drop = vulkan_capture_drop,
    .graph_launch = vulkan_graph_launch,
    .graph_close = vulkan_graph_close,
    .libraries = vulkan_libraries,
    .pipelines_put = vulkan_pipelines_put,
    .pipelines_get = vulkan_pipelines_get,
};

const concord_shim *concord_shim_vulkan(void);

const concord_shim *concord_shim_vulkan(void) { return &vulkan_shim; }
