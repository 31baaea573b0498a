// A masked access whose inactive lanes are in an inaccessible page is allowed, but takes the
// processor some hundred nanoseconds, and buffers end at such
// pages. So near the end of a page, elements are accessed one by one.
IN int near_page_end(const void *p, uintptr_t size) { return ((uintptr_t)p & 4095) > 4096 - size; }
