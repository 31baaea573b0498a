// fiber.c: stacks and the switch between them. A switch saves only the registers that the calling
// convention requires a callee to preserve. Signal masks and floating-point modes belong to the
// thread, and kernels do not change them.

#include "exec.h"

#if defined(__APPLE__)
#define SYMBOL(name) "_" name
#define BEGIN_ASM ".text\n.p2align 4\n"
#else
#define SYMBOL(name) name
#define BEGIN_ASM ".text\n.p2align 4\n"
#endif

#if defined(__x86_64__) && !defined(CONCORD_UCONTEXT)

// concord_fiber_jump(save, to) pushes the preserved registers, stores the stack pointer at *save,
// switches to the stack pointer `to` and pops the registers. A new fiber starts in
// concord_fiber_start with its function in r13 and its argument in r12. The processor predicts an
// indirect jump well, because all items continue at the same address after a barrier; it would
// mispredict a ret.
__asm__(BEGIN_ASM SYMBOL("concord_fiber_jump") ":\n"
                                               "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq "
                                               "%r13\n  pushq %r14\n  pushq %r15\n"
                                               "  movq %rsp, (%rdi)\n"
                                               "  movq %rsi, %rsp\n"
                                               "  popq %r15\n  popq %r14\n  popq %r13\n  popq "
                                               "%r12\n  popq %rbx\n  popq %rbp\n"
                                               "  popq %rcx\n"
                                               "  jmpq *%rcx\n" SYMBOL(
                                                   "concord_fiber_start") ":\n"
                                                                          "  movq %r12, %rdi\n"
                                                                          "  callq *%r13\n"
                                                                          "  ud2\n");
// Seven words are popped; the stack pointer is then a multiple of 16, as a call requires.
enum { FRAME_WORDS = 9, FRAME_ARG = 3, FRAME_FN = 2, FRAME_PC = 6 };

#elif defined(__aarch64__) && !defined(CONCORD_UCONTEXT)

__asm__(BEGIN_ASM SYMBOL(
    "concord_fiber_jump") ":\n"
                          "  sub sp, sp, #160\n"
                          "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, "
                          "[sp, #32]\n"
                          "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, "
                          "[sp, #80]\n"
                          "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"
                          "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
                          "  mov x9, sp\n  str x9, [x0]\n"
                          "  mov sp, x1\n"
                          "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, "
                          "[sp, #32]\n"
                          "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, "
                          "[sp, #80]\n"
                          "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
                          "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
                          "  add sp, sp, #160\n"
                          "  br x30\n" SYMBOL("concord_fiber_start") ":\n"
                                                                     "  mov x0, x19\n"
                                                                     "  blr x20\n"
                                                                     "  brk #1\n");
enum { FRAME_WORDS = 20, FRAME_ARG = 0, FRAME_FN = 1, FRAME_PC = 11 };

#else
#define CONCORD_USE_UCONTEXT 1
#include <ucontext.h>
#endif

#ifndef CONCORD_USE_UCONTEXT

extern void concord_fiber_jump(void **save, void *to) __attribute__((visibility("hidden")));
extern void concord_fiber_start(void) __attribute__((visibility("hidden")));

static inline void fiber_switch(void **save, void *to) { concord_fiber_jump(save, to); }

static void fiber_prepare(struct fiber *f, void *top) {
  uintptr_t *frame = (uintptr_t *)((uintptr_t)top & ~(uintptr_t)63) - FRAME_WORDS;
  memset(frame, 0, FRAME_WORDS * sizeof *frame);
  frame[FRAME_ARG] = (uintptr_t)f;
  frame[FRAME_FN] = (uintptr_t)fiber_body;
  frame[FRAME_PC] = (uintptr_t)concord_fiber_start;
  f->sp = frame;
}

#else

// On other processors the C library switches, with a system call each time (200 ns instead of 10).
// The saved context is on the stack that it describes.
static void fiber_switch(void **save, void *to) {
  ucontext_t here;
  *save = &here;
  swapcontext(&here, to);
}

static void fiber_ucontext(unsigned hi, unsigned lo) {
  fiber_body((struct fiber *)((uintptr_t)hi << 32 | lo));
}

static void fiber_prepare(struct fiber *f, void *top) {
  char *stack = f->base + STACK_GUARD;
  ucontext_t *c = (ucontext_t *)(((uintptr_t)top - sizeof(ucontext_t)) & ~(uintptr_t)63);
  getcontext(c);
  sigemptyset(&c->uc_sigmask);
  pthread_sigmask(SIG_SETMASK, NULL, &c->uc_sigmask);
  c->uc_stack.ss_sp = stack;
  c->uc_stack.ss_size = (size_t)((char *)c - stack);
  c->uc_link = NULL;
  makecontext(c, (void (*)(void))fiber_ucontext, 2, (unsigned)((uintptr_t)f >> 32),
              (unsigned)(uintptr_t)f);
  f->sp = c;
}

#endif

#if defined(__SANITIZE_ADDRESS__)
#define CONCORD_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CONCORD_ASAN 1
#endif
#endif
#ifdef CONCORD_ASAN
void __asan_unpoison_memory_region(void const volatile *addr, size_t size);
#endif

static void fiber_reset(struct fiber *f) {
#ifdef CONCORD_ASAN
  // Frames that did not return have left their red zones in the sanitizer's shadow memory.
  __asan_unpoison_memory_region(f->base + STACK_GUARD, f->bytes - STACK_GUARD);
#endif
  fiber_prepare(f, f);
}

static struct fiber *fiber_new(struct worker *w, uint32_t index, size_t stack_bytes) {
  size_t bytes = STACK_GUARD + stack_bytes;
  char *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return NULL;
  if (mprotect(base + STACK_GUARD, stack_bytes, PROT_READ | PROT_WRITE) != 0) {
    munmap(base, bytes);
    return NULL;
  }
  uintptr_t top = (uintptr_t)base + bytes - (size_t)index * STACK_COLOUR % 4096;
  struct fiber *f = (struct fiber *)((top - sizeof(struct fiber)) & ~(uintptr_t)63);
  f->base = base;
  f->bytes = bytes;
  f->index = index;
  f->worker = w;
  fiber_reset(f);
  return f;
}

static void fiber_free(struct fiber *f) {
  if (f != NULL)
    munmap(f->base, f->bytes);
}
