package conformance

// Assertions. Each takes a message in the form of fmt.Sprintf, which is optional except for expect
// and need. need and the functions whose names begin with must end the row if they fail; the others
// go on.

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

func expect(t *row, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
}

func need(t *row, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Fatalf(format, args...)
	}
}

func must(t *row, err error, msg ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s", describe("unexpected error: "+err.Error(), msg))
	}
}

// result is what a call returned: call(d.Alloc(runtime.F32, 4)).must(t).
type result[T any] struct {
	value T
	err   error
}

func call[T any](value T, err error) result[T] { return result[T]{value, err} }

// must returns the value, and ends the row if the call failed.
func (r result[T]) must(t *row, msg ...any) T {
	t.Helper()
	must(t, r.err, msg...)
	return r.value
}

// fails fails the row unless the call returned an error that matches the target.
func (r result[T]) fails(t *row, target error, msg ...any) {
	t.Helper()
	errorIs(t, r.err, target, msg...)
}

// noError reports whether err is nil, and fails the row if not.
func noError(t *row, err error, msg ...any) bool {
	t.Helper()
	if err != nil {
		t.Errorf("%s", describe("unexpected error: "+err.Error(), msg))
	}
	return err == nil
}

func errorIs(t *row, err, target error, msg ...any) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s", describe(fmt.Sprintf("the error is %q, which does not match %q", fmt.Sprint(err), target), msg))
	}
}

func errorSays(t *row, err error, text string, msg ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s", describe(fmt.Sprintf("the error is %q, without %q", fmt.Sprint(err), text), msg))
	}
}

func equal[T any](t *row, want, got T, msg ...any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%s", describe(difference(want, got), msg))
	}
}

func mustEqual[T any](t *row, want, got T, msg ...any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("%s", describe(difference(want, got), msg))
	}
}

// difference describes how two values differ; for long slices it returns the first difference.
func difference(want, got any) string {
	w, g := reflect.ValueOf(want), reflect.ValueOf(got)
	if w.Kind() != reflect.Slice || max(w.Len(), g.Len()) <= 16 {
		return fmt.Sprintf("got %v, want %v", got, want)
	}
	if w.Len() != g.Len() {
		return fmt.Sprintf("got %d elements, want %d", g.Len(), w.Len())
	}
	i := 0
	for reflect.DeepEqual(w.Index(i).Interface(), g.Index(i).Interface()) {
		i++
	}
	return fmt.Sprintf("element %d of %d: got %v, want %v", i, w.Len(), g.Index(i), w.Index(i))
}

// describe puts a message in front of a description of the failure.
func describe(found string, msg []any) string {
	if len(msg) == 0 {
		return found
	}
	return fmt.Sprintf(msg[0].(string), msg[1:]...) + ": " + found
}
