// A masked access that reaches into a page which may not be touched is right, but the
// processor takes some hundred nanoseconds to find that out, and buffers end at such
// pages. Near the end of a page elements are taken one by one instead.
IN int near_page_end(const void *p, uintptr_t size) { return ((uintptr_t)p & 4095) > 4096 - size; }
