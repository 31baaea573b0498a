// fault.c: faults of kernel code. Handlers for the five synchronous signals are installed in front
// of the handlers that were there (usually Go's). A fault of a worker in kernel code ends the
// kernel: the handler records it and switches to the stack on which the worker waits. Every other
// signal is passed on to the previous handlers.

#include "exec.h"

#include <ucontext.h>

enum { FAULT_SIGNALS = 5, FAULT_CHAIN = 8 };

static const int fault_signals[FAULT_SIGNALS] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};

// fault_prev has the handlers that were installed before ours, oldest first. A library that is
// loaded later (an OpenCL driver) may install its own in front of ours. The next launch then
// installs ours in front of that one, and it passes signals on to ours: when a handler is entered a
// second time for the same signal, it takes the next older entry of the list, so that there is no
// cycle.
static struct {
  struct sigaction chain[FAULT_CHAIN];
  _Atomic int count;
} fault_prev[FAULT_SIGNALS];

// Signal handlers may not use thread-local storage that is allocated at first use.
#define FAULT_TLS static __thread __attribute__((tls_model("initial-exec")))
FAULT_TLS struct worker *fault_self;
FAULT_TLS int fault_depth;

// The last fault that was passed on, and how many handlers returned without effect. Such a handler (LLVM's, which an OpenCL
// driver loads) leaves the instruction to fault again at the same address; then the next older handler gets the
// signal, at last the oldest one, which is Go's.
FAULT_TLS int fault_last_signal, fault_skip;
FAULT_TLS void *fault_last_address;

// fault_forward passes the signal to the handler that was installed before ours.
static void fault_forward(int slot, int sig, siginfo_t *info, void *context) {
  if (fault_depth == 0 && info->si_code > 0) {
    bool again = sig == fault_last_signal && info->si_addr == fault_last_address;
    fault_skip = again && fault_skip < FAULT_CHAIN ? fault_skip + 1 : 0;
    fault_last_signal = sig, fault_last_address = info->si_addr;
  }
  int at = atomic_load(&fault_prev[slot].count) - 1 - fault_depth - (info->si_code > 0 ? fault_skip : 0);
  const struct sigaction *prev = &fault_prev[slot].chain[at < 0 ? 0 : at];
  if (prev->sa_flags & SA_SIGINFO) {
    fault_depth++;
    prev->sa_sigaction(sig, info, context);
    fault_depth--;
    return;
  }
  bool sent = info->si_code <= 0; // sent by kill and not caused by the processor
  if (prev->sa_handler == SIG_IGN && sent)
    return;
  if (prev->sa_handler != SIG_DFL && prev->sa_handler != SIG_IGN) {
    fault_depth++;
    prev->sa_handler(sig);
    fault_depth--;
    return;
  }
  // Install the default action: it takes effect when this handler returns and the instruction
  // faults again.
  struct sigaction dfl;
  memset(&dfl, 0, sizeof dfl);
  dfl.sa_handler = SIG_DFL;
  sigaction(sig, &dfl, NULL);
  if (sent)
    raise(sig);
}

static void fault_handler(int sig, siginfo_t *info, void *context) {
  struct worker *w = fault_self;
  int saved = errno;
  if (w == NULL || !w->in_kernel || info->si_code <= 0) {
    for (int i = 0; i < FAULT_SIGNALS; i++)
      if (fault_signals[i] == sig)
        fault_forward(i, sig, info, context);
    errno = saved;
    return;
  }
  w->in_kernel = 0;
  w->signal_number = sig;
  w->signal_code = info->si_code;
  w->signal_address = (uint64_t)(uintptr_t)info->si_addr;
  w->failed = CONCORD_FAULT;
  // The mask of the handler blocks all signals. Restore the old one, as the handler does not
  // return.
  pthread_sigmask(SIG_SETMASK, &((ucontext_t *)context)->uc_sigmask, NULL);
  void *lost;
  fiber_switch(&lost, w->sched);
}

// fault_install installs the handlers, or installs them again in front of others. The caller holds
// the pool's lock.
static int fault_install(void) {
  for (int i = 0; i < FAULT_SIGNALS; i++) {
    struct sigaction now, ours;
    if (sigaction(fault_signals[i], NULL, &now) != 0)
      return errno;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == fault_handler)
      continue;
    int n = atomic_load(&fault_prev[i].count);
    if (n == FAULT_CHAIN)
      continue;
    fault_prev[i].chain[n] = now;
    atomic_store(&fault_prev[i].count, n + 1);
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = fault_handler;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigfillset(&ours.sa_mask);
    if (sigaction(fault_signals[i], &ours, NULL) != 0) {
      atomic_store(&fault_prev[i].count, n);
      return errno;
    }
  }
  return 0;
}

// fault_stack gives the thread a stack for its signal handlers if it has none, because the
// fault may be an overflow of the fiber's stack. Go's threads have one.
static int fault_stack(void) {
  FAULT_TLS bool checked;
  stack_t alt;
  if (checked)
    return 0;
  if (sigaltstack(NULL, &alt) != 0)
    return errno;
  if (alt.ss_flags & SS_DISABLE) {
    void *map = mmap(NULL, ALT_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
      return ENOMEM;
    alt = (stack_t){.ss_sp = map, .ss_size = ALT_STACK};
    if (sigaltstack(&alt, NULL) != 0)
      return errno;
  }
  checked = true;
  return 0;
}

// fault_thread assigns a worker to the calling thread, or none if w is NULL.
static int fault_thread(struct worker *w) {
  fault_self = w;
  return w != NULL ? fault_stack() : 0;
}

// fault_mask blocks all signals except the five in a thread of the pool, so that signals to the
// process go to threads that expect them.
static void fault_mask(void) {
  sigset_t mask;
  sigfillset(&mask);
  for (int i = 0; i < FAULT_SIGNALS; i++)
    sigdelset(&mask, fault_signals[i]);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

// fault_in_local reports whether the address of the fault is in the page after the group's local
// memory.
static bool fault_in_local(const struct worker *w) {
  uint64_t end = (uint64_t)(uintptr_t)(w->local_map + w->local_map_bytes);
  return w->job->local_bytes > 0 && w->signal_address < end &&
         w->signal_address >= end - (uint64_t)sysconf(_SC_PAGESIZE);
}

// fault_explain describes the fault of a worker in err.
static void fault_explain(const struct worker *w, concord_error *err) {
  const struct fiber *f = w->current;
  uint64_t base = (uint64_t)(uintptr_t)f->base;
  const char *what;
  err->address = w->signal_address;
  switch (w->signal_number) {
  case SIGFPE:
    err->fault = CONCORD_FAULT_ARITHMETIC;
    what = "integer division by zero or overflow";
    break;
  case SIGILL:
  case SIGTRAP: // __builtin_trap raises it on arm64
    err->fault = CONCORD_FAULT_ILLEGAL;
    what = "illegal instruction";
    break;
  default:
    err->fault = CONCORD_FAULT_ADDRESS;
    what = "bad address";
    if (w->signal_address >= base && w->signal_address < base + STACK_GUARD) {
      err->fault = CONCORD_FAULT_STACK;
      what = "stack overflow";
    } else if (fault_in_local(w)) {
      err->fault = CONCORD_FAULT_LOCAL;
      what = "bad address behind the group's local memory";
    }
#ifdef __linux__
    if (w->signal_code == SI_KERNEL) { // x86 reports no address if it was not canonical
      err->address = CONCORD_ADDRESS_UNKNOWN;
      snprintf(err->message, sizeof err->message, "bad address (unknown)");
      return;
    }
#endif
  }
  snprintf(err->message, sizeof err->message, "%s (0x%llx)", what,
           (unsigned long long)w->signal_address);
}
