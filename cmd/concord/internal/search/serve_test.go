package search

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
)

// numberedServer serves vectors (i, 0), with ids from 0 to 9.
func numberedServer(t testing.TB) *searchServer {
	ix, err := ann.New(context.Background(), "brute", 2, "euclidean", ann.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, ix.Close()) })
	for i := range 10 {
		require.NoError(t, ix.Add(t.Context(), []int64{int64(i)}, []float32{float32(i), 0}))
	}
	s := &searchServer{index: ix, most: 5, body: 1000, limit: time.Minute, metrics: newServerMetrics(ix, func() int64 {
		return 3
	}), ending: context.Background()}
	s.ready()
	s.turns = make(chan struct{}, 2)
	return s
}

func post(s *searchServer, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "http://127.0.0.1:7411/search", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, r)
	return w
}

func TestServeAnswers(t *testing.T) {
	s := numberedServer(t)
	w := post(s, `{"queries": [[2.2, 0], [9, 0]], "k": 2}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	var got searchAnswer
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	require.Len(t, got.Results, 2)
	assert.EqualValues(t, 2, got.Results[0][0].ID)
	assert.EqualValues(t, 3, got.Results[0][1].ID)
	assert.InDelta(t, 0.2, float64(got.Results[0][0].Distance), 1e-6)
	assert.EqualValues(t, 9, got.Results[1][0].ID)
	assert.Contains(t, post(s, `{"query": [2.2, 0], "k": 1, "ids": [5, 7]}`).Body.String(), `"id":5`)
	assert.Contains(t, post(s, `{"query": [2.2, 0], "k": 1, "ids": [7, 5]}`).Body.String(), `"results":[[]]`)
	assert.EqualValues(t, 3, s.answers.Load())
	w = post(s, `{"query": [3e38, -3e38], "k": 1}`)
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Contains(t, w.Body.String(), `"distance":null}]]`, "no number of 32 bits is so large")

	for body, want := range map[string]int{
		``: 400, `{`: 400, `[]`: 400, `{"query": [1, 2]} {}`: 400, `{"question": [1, 2]}`: 400, `{"query": [1]}`: 400,
		`{"query": []}`:                          400,
		`{"query": [1, 2], "queries": [[1, 2]]}`: 400, `{"queries": []}`: 400, `{"query": [1, 2], "k": 0}`: 400,
		`{"query": [1, 2], "k": 6}`: 400,
		`{"query": [1, 1e99]}`:      400, `{"queries": [[1,2],[1,2],[1,2],[1,2],[1,2],[1,2]]}`: 400,
		`{"query": [1, 2], "ids": [1]}`: 400,
		`{"query": [1, 2]}}`:            400, `{"query": [1, 2]} }`: 400, `{"query": [1, 2]}]`: 400,
		`{"query": [1, 2]}x`: 400,
		`{"query": [1, 2]},`: 400, `{"query": [1, 2]}"`: 400,
		`{"query": [null, 2]}`: 400, `{"query": [1, 2], "k": null}`: 400, `{"query": [1, 2], "ids": [null, 3]}`: 400,
		`{"query": [` + strings.Repeat("1,", 1000) + `1]}`: 413,
	} {
		w := post(s, body)
		assert.Equal(t, want, w.Code, "%s: %s", body, w.Body)
		assert.Contains(t, w.Body.String(), `{"error":`)
		assert.NotRegexp(t, "Go |json:|EOF|float32|searchRequest", w.Body, "words of Go")
	}
	for _, c := range []struct {
		method, url, Kind string
		want              int
	}{
		{"GET", "http://localhost/health", "", 200}, {"GET", "http://[::1]:80/info", "", 200},
		{"GET", "http://[::1]/info", "", 200}, {"GET", "http://LOCALHOST:7411/info", "", 200},
		{"GET", "http://LocalHost/info", "", 200}, {"GET", "http://127.0.0.1/search", "", 405},
		{"GET", "http://127.0.0.1/", "", 404},
		{"GET", "http://example.com/health", "", 403}, {"POST", "http://127.0.0.1/search", "text/plain", 415},
	} {
		r := httptest.NewRequest(c.method, c.url, strings.NewReader(`{"query": [1, 2]}`))
		r.Header.Set("Content-Type", c.Kind)
		w := httptest.NewRecorder()
		s.handler().ServeHTTP(w, r)
		assert.Equal(t, c.want, w.Code, c.url)
	}
	s.limit = time.Millisecond // all turns are taken
	s.turns <- struct{}{}
	s.turns <- struct{}{}
	assert.Equal(t, http.StatusServiceUnavailable, post(s, `{"query": [1, 2]}`).Code)
}

// TestServeMemory sends bodies whose lists and numbers would take many times their memory: they are refused
// before that.
func TestServeMemory(t *testing.T) {
	s := numberedServer(t)
	s.body = 4 << 20
	s.ready()
	for what, body := range map[string]string{
		"empty queries": `{"queries": [` + strings.Repeat("[],", 1<<20) + `[]]}`,
		"nested":        `{"queries": ` + strings.Repeat("[", 2<<20),
		"numbers":       `{"query": [` + strings.Repeat("1,", 2<<20-20) + `1]}`,
		"a long number": `{"k": ` + strings.Repeat("1", 4<<20-20) + `}`,
		"a long name":   `{"` + strings.Repeat("x", 4<<20-20) + `": 1}`,
		"again":         strings.Repeat(`{"query": [1, 2]}`, 200_000),
	} {
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		w := post(s, body)
		goruntime.ReadMemStats(&after)
		assert.Equal(t, http.StatusBadRequest, w.Code, what)
		assert.Less(t, w.Body.Len(), 300, what)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*s.body), what)
	}
	assert.Equal(t, http.StatusOK, post(s, `{"query": [1, 2]}`).Code, "memory is given back")
}

// TestServeHeldBodies has more bodies arrive at a time than there is memory for: one more is refused, and when
// they have ended there is room again.
func TestServeHeldBodies(t *testing.T) {
	s := numberedServer(t)
	var writers []*io.PipeWriter
	var wait sync.WaitGroup
	send := func(n int) chan int {
		from, to := io.Pipe()
		code := make(chan int, 1)
		wait.Go(func() {
			r := httptest.NewRequest("POST", "http://127.0.0.1:7411/search", from)
			r.Header.Set("Content-Type", "application/json")
			r.ContentLength = -1
			w := httptest.NewRecorder()
			s.handler().ServeHTTP(w, r)
			from.Close()
			code <- w.Code
		})
		_, err := to.Write([]byte(strings.Repeat(" ", n)))
		assert.NoError(t, err)
		writers = append(writers, to)
		return code
	}
	for range bodies {
		send(900)
	}
	for s.held.TryAcquire(100*bodies + 1) { // until all of it was counted
		s.held.Release(100*bodies + 1)
		goruntime.Gosched()
	}
	full := send(101 * bodies)
	assert.Equal(t, http.StatusServiceUnavailable, <-full)
	assert.Equal(t, http.StatusOK, post(s, `{"query": [1, 2]}`).Code, "which has room")
	for _, w := range writers {
		w.Close()
	}
	wait.Wait()
	assert.True(t, s.held.TryAcquire(bodies*s.body), "all is given back")
}

// get returns the answer to a request without a body.
func get(s *searchServer, url string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, httptest.NewRequest("GET", url, nil))
	return w
}

func TestServeMetrics(t *testing.T) {
	s := numberedServer(t)
	for range 2 {
		require.Equal(t, http.StatusOK, post(s, `{"queries": [[1, 2], [3, 4]], "k": 1}`).Code)
	}
	require.Equal(t, http.StatusBadRequest, post(s, `{"query": [1]}`).Code)
	require.Equal(t, http.StatusOK, get(s, "http://localhost/health").Code)
	w := get(s, "http://localhost/metrics")
	require.Equal(t, http.StatusOK, w.Code)
	assert.True(t, strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4"), w.Header())
	for _, line := range []string{
		`concord_search_requests_total{code="200",path="/search"} 2`,
		`concord_search_requests_total{code="400",path="/search"} 1`,
		`concord_search_requests_total{code="200",path="/health"} 1`, "concord_search_requests_in_flight 1", // this one
		"concord_index_size 10", "concord_dimensions 2", `concord_distance_metric{metric="euclidean"} 1`,
		"concord_fallbacks_total 3", "concord_queries_total 4",
		"concord_search_duration_seconds_count 2", `concord_search_duration_seconds_bucket{le="10"} 2`,
	} {
		assert.Contains(t, w.Body.String(), line+"\n")
	}
	assert.Contains(t, w.Body.String(), "\ngo_goroutines ")
	assert.Regexp(t, `\nconcord_query_latency_microseconds_avg [0-9.e+]*[1-9]`, w.Body.String())
	assert.Contains(t, w.Body.String(), "\nconcord_uptime_seconds ")

	// What a client chooses makes no series.
	for i := range 50 {
		name := strconv.Itoa(i)
		get(s, "http://localhost/"+name)
		get(s, "http://"+name+".example/health")
		s.handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("X"+name, "http://localhost/search?x="+name, nil))
	}
	var series []string
	for line := range strings.Lines(get(s, "http://localhost/metrics").Body.String()) {
		if strings.HasPrefix(line, "concord_search_requests_total{") {
			series = append(series, strings.TrimSpace(line))
		}
	}
	assert.ElementsMatch(t, []string{
		`concord_search_requests_total{code="200",path="/search"} 2`,
		`concord_search_requests_total{code="400",path="/search"} 1`,
		`concord_search_requests_total{code="200",path="/health"} 1`,
		`concord_search_requests_total{code="200",path="/metrics"} 1`,
		`concord_search_requests_total{code="403",path="other"} 50`,
		`concord_search_requests_total{code="404",path="other"} 50`,
		`concord_search_requests_total{code="405",path="other"} 50`,
	}, series)
	assert.Equal(t, http.StatusForbidden, get(s, "http://example.com/metrics").Code)

	// A search that waits is in flight, and one that got no turn took time, too.
	s.turns <- struct{}{}
	s.turns <- struct{}{}
	s.limit = 200 * time.Millisecond
	done := make(chan int)
	go func() { done <- post(s, `{"query": [1, 2]}`).Code }()
	assert.Eventually(t, func() bool {
		return strings.Contains(get(s, "http://localhost/metrics").Body.String(), "concord_search_requests_in_flight 2\n")
	}, 10*time.Second, time.Millisecond)
	assert.Equal(t, http.StatusServiceUnavailable, <-done)
	text := get(s, "http://localhost/metrics").Body.String()
	assert.Contains(t, text, "concord_search_duration_seconds_count 3\n")
	assert.Contains(t, text, `concord_search_duration_seconds_bucket{le="0.1"} 2`+"\n")
	assert.Contains(t, text, "concord_search_requests_in_flight 1\n")
}

// TestServeClosesAfterLargeBody demands that the rest of a body that is too large is not read.
func TestServeClosesAfterLargeBody(t *testing.T) {
	server := httptest.NewServer(numberedServer(t).handler())
	defer server.Close()
	response, err := http.Post(server.URL+"/search", "application/json",
		strings.NewReader(`{"query": [`+strings.Repeat("1,", 1000)+`1]}`))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
	assert.True(t, response.Close)
}

// FuzzServe finds bodies that make the server panic, or answer something that is not JSON.
func FuzzServe(f *testing.F) {
	s := numberedServer(f)
	f.Add(`{"query": [1, 2], "k": 3, "ids": [0, 5]}`)
	f.Add(`{"queries": [[1e38, -1e38], [0, 0]]}`)
	f.Fuzz(func(t *testing.T, body string) {
		w := post(s, body)
		assert.True(t, json.Valid(w.Body.Bytes()), "%q", w.Body)
	})
}

// TestServe asks a process, and interrupts it.
func TestServe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "base.ann")
	require.NoError(t, ann.Save(t.Context(), path, numberedServer(t).index))
	cmd := apptest.Process("search", "serve", path, "--listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	url, _, ok := strings.Cut(lines.Text(), " ")
	require.True(t, ok, lines.Text())
	assert.Contains(t, lines.Text(), "10 vectors")
	response, err := http.Post(url+"/search", "application/json", strings.NewReader(`{"query": [4, 0], "k": 1}`))
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Contains(t, string(text), `"results":[[{"id":4,"distance":0}]]`)

	// A request of which a half has arrived holds nothing up.
	half, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	defer half.Close()
	_, err = half.Write([]byte("POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
		"application/json\r\nContent-Length: 20\r\n\r\n{\"query\""))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		response, err := http.Get(url + "/metrics")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return strings.Contains(string(text), "concord_search_requests_in_flight 2\n")
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	text, err = io.ReadAll(half)
	require.NoError(t, err)
	assert.Contains(t, string(text), "503 ")
	require.True(t, lines.Scan())
	assert.Equal(t, "searches answered: 1", lines.Text())
	require.NoError(t, cmd.Wait())

	for _, args := range [][]string{{"--listen", "0.0.0.0:0"}, {"--listen", "here"}, {"--listen", "example.com:80"},
		{"--most", "0"}, {"--limit", "0s"}} {
		status, _, stderr := apptest.Run(append([]string{"search", "serve", path}, args...)...)
		assert.Equal(t, app.ExitUsage, status, stderr)
	}
}
