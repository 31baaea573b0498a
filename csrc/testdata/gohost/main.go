// Command gohost runs faulting kernels on Go's own threads, between Go code that
// panics on the same signals: the executor's handlers are in front of Go's and
// neither may take the other's faults. It prints "ok".
package main

/*
#include "../../host/host.h"
#include <stddef.h>
static volatile int zero;
static void fine(concord_ctx *c, void *const *a) {
  (void)c, (void)a;
  for (volatile int i = 0; i < 2000; i++)
    ;
}
static void divide(concord_ctx *c, void *const *a) {
  (void)a;
  if (c->group[0] == 7)
    zero = 7 / zero;
}
static void wild(concord_ctx *c, void *const *a) {
  (void)a;
  c->calls->barrier(c, 1);
  if (c->item[0] == 2)
    *(volatile int *)(zero + 64l) = 1;
}
static __attribute__((noinline)) int deep(volatile char *p, int n) {
  volatile char frame[300];
  frame[n & 255] = p[0];
  return n == 0 ? 0 : deep(frame, n - 1) + frame[3];
}
static void overflow(concord_ctx *c, void *const *a) {
  (void)c, (void)a;
  volatile char x = 0;
  zero = 0 * deep(&x, 1 << 30);
}
static concord_kernel kernels[] = {{"fine", 0, 0, NULL, 0, fine, 0},
                                   {"divide", 0, 0, NULL, 0, divide, 0},
                                   {"wild", 1, 0, NULL, 0, wild, 0},
                                   {"overflow", 1, 0, NULL, 0, overflow, 0}};
static int launch(int k, int *fault) {
  concord_error e;
  concord_launch x = {0};
  x.kernel = &kernels[k];
  x.dim = 1;
  x.global[0] = 64;
  x.local[0] = 8;
  int rc = concord_host_launch(&x, &e);
  *fault = e.fault;
  return rc;
}
#cgo noescape launch
#cgo nocallback launch
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

// dereference panics by a signal; Go turns it into an error.
func dereference(p *int) (err any) {
	defer func() { err = recover() }()
	return *p
}

func main() {
	done := make(chan bool)
	go func() { // garbage collections interrupt threads with signals
		for {
			select {
			case <-done:
				return
			default:
				runtime.GC()
				time.Sleep(time.Millisecond)
			}
		}
	}()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 150 {
				k := (g + i) % 4
				var fault C.int
				status := C.launch(C.int(k), &fault)
				want := [4]C.int{0, 3, 1, 2}[k]
				if k == 1 && runtime.GOARCH != "amd64" {
					want = 0 // here the division does not fault
				}
				if fault != want || (status == 4) != (want != 0) {
					fmt.Println("kernel", k, "status", status, "fault", fault)
					os.Exit(1)
				}
				if err, ok := dereference(nil).(runtime.Error); !ok {
					fmt.Println("no panic:", err)
					os.Exit(1)
				}
			}
		})
	}
	wg.Wait()
	close(done)
	fmt.Println("ok")
}
