package search

// concord search serve: an index of nearest neighbours behind HTTP, on this machine alone.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/semaphore"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime"
)

// searchServer answers requests about one index.
type searchServer struct {
	index   ann.Index
	most    int                 // neighbours of a query
	body    int64               // bytes of a request
	limit   time.Duration       // of a search, with its wait for its turn
	turns   chan struct{}       // one for each search that runs
	held    *semaphore.Weighted // bytes of the bodies of all requests that are not answered yet
	read    *semaphore.Weighted // bytes of bodies that are made numbers at a time
	answers atomic.Int64
	metrics *serverMetrics
	ending  context.Context // done when bodies of requests are no longer waited for
}

// bodies is how many of the largest bodies there may be at a time. A number of a query takes up to four times
// the memory of its text.
const bodies = 4

// ready makes what depends on the options.
func (s *searchServer) ready() {
	s.turns = make(chan struct{}, goruntime.GOMAXPROCS(0))
	s.held, s.read = semaphore.NewWeighted(bodies*s.body), semaphore.NewWeighted(s.body)
}

// searchRequest is the body of POST /search: one query or several, and what to find for each.
type searchRequest struct {
	Query   []float32   `json:"query"`
	Queries [][]float32 `json:"queries"`
	K       int         `json:"k"`
	IDs     []int64     `json:"ids"` // the first and the last id that may be found
}

// searchAnswer has the neighbours of each query, the nearest first.
type searchAnswer struct {
	Results [][]neighbor `json:"results"`
	TookMs  app.Number   `json:"took_ms"`
}

// neighbor is a vector that was found. Its distance is null if that is no finite number, such as one beyond
// those of 32 bits.
type neighbor struct {
	ID       int64      `json:"id"`
	Distance app.Number `json:"distance"`
}

func searchServeCommand(a *app.App) *cobra.Command {
	var s searchFlags
	var address string
	var during time.Duration
	server := searchServer{}
	cmd := &cobra.Command{
		Use:   "serve INDEX",
		Short: "Answer searches over HTTP on this machine",
		Long: `Serve opens an index and answers, on an address of this machine alone, until it is interrupted;
searches whose request has arrived are finished then. All bodies are JSON, but for those of /metrics
and of paths and methods that there are not; an error is {"error": "..."} with a status of 4xx or
5xx.

  POST /search  {"query": [...]} or {"queries": [[...], ...]}, with "k" (default 10) and, to
                find only ids from the first to the last, "ids": [0, 999]; the answer is
                {"results": [[{"id": 7, "distance": 0.5}, ...]], "took_ms": 0.2};
                a distance that is not finite is null
  GET /info     what the index is made of
  GET /health   {"status": "ok"}
  GET /metrics  for Prometheus: requests by path and status code, requests in flight, queries, how long
                searches take, what the index is made of, and what Go's runtime reports of itself`,
		Example: `  concord search serve digits.ann
  concord search serve base.ann --listen 127.0.0.1:0 --most 100 --limit 500ms
  curl -s -H 'Content-Type: application/json' -d '{"query": [0.5, 1], "k": 3}' http://127.0.0.1:7411/search`,
		Args: cobra.ExactArgs(1),
	}
	f := cmd.Flags()
	f.StringVar(&address, "listen", "127.0.0.1:7411", "the address, of this machine; port 0 is a free one")
	f.IntVar(&server.most, "most", 1000, "the largest k, and the largest number of queries of a request")
	f.Int64Var(&server.body, "body", 16<<20, "the largest body in bytes; all that are not answered yet may have four "+
		"times that")
	f.DurationVar(&server.limit, "limit", 10*time.Second, "the longest time for a request")
	f.DurationVar(&during, "for", 0, "end after this time (default: when it is interrupted)")
	f.StringVar(&s.device, "device", "", "the device to search on with an index of kind gpu (default auto), flat, ivf "+
		"or pq (default cpu:0)")
	effortFlags(cmd, &s)
	return a.Runnable(cmd, func(ctx context.Context, args []string) error {
		if server.most < 1 || server.body < 1 || server.limit <= 0 || during < 0 {
			return app.Usagef("--most, --body and --limit have to be positive, and --for not negative")
		}
		if err := onThisMachine(address); err != nil {
			return err
		}
		return withIndex(ctx, a, args[0], s, func(ix ann.Index) error {
			server.index = ix
			return serve(ctx, a, &server, address, during)
		})
	})
}

// loopback reports whether a host is a name, in any case, or an address that only programs on this machine reach.
func loopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// onThisMachine refuses addresses that other machines can reach: the server does not authenticate its clients.
func onThisMachine(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return app.Usagef("--listen: %v", err)
	}
	if !loopback(host) {
		return app.Usagef("--listen is an address of this machine alone, such as 127.0.0.1:7411, not %q", address)
	}
	return nil
}

// serve answers until ctx or the time ends.
func serve(ctx context.Context, a *app.App, s *searchServer, address string, during time.Duration) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s.ready()
	s.metrics = newServerMetrics(s.index, a.Session.Fallbacks)
	var stop context.CancelFunc
	s.ending, stop = context.WithCancel(context.Background())
	defer stop()
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: s.limit + 5*time.Second,
		WriteTimeout: 2*s.limit + 5*time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 16}
	a.Printf("http://%s answers searches of %s\n", listener.Addr(), ui.Quantity(s.index.Info().Len, "vector"))
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	var end <-chan time.Time
	if during > 0 {
		end = time.After(during)
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	case <-end:
	}
	stop()
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.limit+time.Second)
	defer cancel()
	if err = server.Shutdown(wait); errors.Is(err, context.DeadlineExceeded) { // a client does not take its answer
		err = server.Close()
	}
	if err != nil {
		return err
	}
	a.Printf("searches answered: %d\n", s.answers.Load())
	return nil
}

func (s *searchServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /search", s.search)
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, s.index.Info()) })
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.Handle("GET /metrics", s.metrics.handler(s.limit))
	local := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A page of another site can make its own name resolve to this machine, and the browser then sends that name
		// as the host.
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !loopback(host) {
			refuse(w, http.StatusForbidden, fmt.Errorf("the host %q is not this machine", r.Host))
			return
		}
		mux.ServeHTTP(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, s.body) // with the server's own writer, by which it closes the connection
		s.metrics.count(local, w, r)
	})
}

func (s *searchServer) search(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), s.limit)
	defer cancel()
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, errors.New("the content type has to be application/json"))
		return
	}
	if r.ContentLength > s.body { // which is not waited for
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", s.body))
		return
	}
	q := searchRequest{K: min(10, s.most)}
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(s.limit)) // what cannot set it ends by the server's own time
	hurry := context.AfterFunc(s.ending, func() { _ = connection.SetReadDeadline(time.Now()) })
	body := heldBody{Reader: r.Body, by: s.held}
	defer func() { s.held.Release(body.bytes) }()
	text, err := io.ReadAll(&body)
	hurry()
	if err == nil {
		err = s.decode(ctx, text, &q)
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", s.body))
		return
	case errors.Is(err, errBusy) || ctx.Err() != nil:
		w.Header().Set("Connection", "close") // the rest of the body is not waited for
		refuse(w, http.StatusServiceUnavailable, errBusy)
		return
	case errors.Is(err, os.ErrDeadlineExceeded):
		refuse(w, http.StatusServiceUnavailable, errors.New("the body did not arrive in time, or the server ends"))
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, malformed(err))
		return
	}
	queries, err := s.queries(&q)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	asked := time.Now()
	defer func() { s.metrics.seconds.Observe(time.Since(asked).Seconds()) }()
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		refuse(w, http.StatusServiceUnavailable, fmt.Errorf("no search could begin within %v", s.limit))
		return
	}
	var filter *ann.Filter
	if q.IDs != nil {
		filter = ann.IDRange(q.IDs[0], q.IDs[1])
	}
	start := time.Now()
	found, err := s.index.SearchBatch(ctx, queries, q.K, filter)
	switch {
	case ctx.Err() != nil:
		refuse(w, http.StatusServiceUnavailable, fmt.Errorf("the search took longer than %v", s.limit))
	case errors.Is(err, runtime.ErrInvalidArgument) || errors.Is(err, runtime.ErrDimension):
		refuse(w, http.StatusBadRequest, err)
	case err != nil:
		refuse(w, http.StatusInternalServerError, err)
	default:
		took := time.Since(start)
		s.answers.Add(1)
		s.metrics.answered(len(found), took)
		lists := make([][]neighbor, len(found))
		for i, list := range found {
			lists[i] = []neighbor{} // and not null
			for _, r := range list {
				lists[i] = append(lists[i], neighbor{r.ID, app.Number(r.Distance)})
			}
		}
		answer(w, http.StatusOK, searchAnswer{lists, app.Number(took.Seconds() * 1e3)})
	}
}

// errBusy is that the bodies of other requests have all the memory that there is for them.
var errBusy = errors.New("the bodies of other requests take all memory for that; try again")

// heldBody counts what it reads.
type heldBody struct {
	io.Reader
	by    *semaphore.Weighted
	bytes int64
}

func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if !b.by.TryAcquire(int64(n)) { // waiting is no help: those who hold the rest may be waiting for more themselves
		return 0, errBusy
	}
	b.bytes += int64(n)
	return n, err
}

// decode reads a request, in its turn. What has more lists or numbers than a request can have is refused before
// memory is taken for them.
func (s *searchServer) decode(ctx context.Context, text []byte, q *searchRequest) error {
	if err := s.read.Acquire(ctx, int64(len(text))); err != nil {
		return errBusy
	}
	defer s.read.Release(int64(len(text)))
	if n := bytes.Count(text, []byte("[")); n > s.most+2 { // queries, each of these, and ids
		return fmt.Errorf("%d lists are more than those of %d queries", n, s.most)
	}
	if n := bytes.Count(text, []byte(",")); n > s.most*s.index.Info().Dim+len("query, queries, k, ids") {
		return fmt.Errorf("%d commas are more than those of %d queries", n, s.most)
	}
	return decodeRequest(text, q)
}

// decodeRequest reads a request.
func decodeRequest(text []byte, q *searchRequest) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(q); err != nil {
		return err
	}
	if d.Decode(new(json.RawMessage)) != io.EOF {
		return errors.New("more than one document")
	}
	// Package json takes a null for what was there before, and so for 0, though clients write it for NaN. No name
	// of a request has these letters.
	if at := bytes.Index(text, []byte("null")); at >= 0 {
		return fmt.Errorf("a null does not belong at byte %d", at)
	}
	return nil
}

// malformed says what is wrong with a document in words of JSON rather than of Go.
func malformed(err error) error {
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		article := "a"
		if strings.HasPrefix(bad.Value, "array") || strings.HasPrefix(bad.Value, "object") {
			article = "an"
		}
		return fmt.Errorf("%s %.40s does not belong at byte %d, in %.40q", article, bad.Value, bad.Offset, bad.Field)
	}
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("the body is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the body ends within the document")
	}
	return fmt.Errorf("%.200s", strings.TrimPrefix(err.Error(), "json: "))
}

// queries returns the queries of a request, one after the other.
func (s *searchServer) queries(q *searchRequest) ([]float32, error) {
	list, dim := q.Queries, s.index.Info().Dim
	switch {
	case (q.Query == nil) == (q.Queries == nil):
		return nil, errors.New(`"query" or "queries" is needed, and not both`)
	case q.Query != nil:
		list = [][]float32{q.Query}
	}
	if len(list) == 0 || len(list) > s.most {
		return nil, fmt.Errorf("%d queries; there can be 1 to %d", len(list), s.most)
	}
	if q.IDs != nil && len(q.IDs) != 2 {
		return nil, fmt.Errorf(`"ids" has %d numbers; it is the first and the last id`, len(q.IDs))
	}
	if q.K < 1 || q.K > s.most {
		return nil, fmt.Errorf(`"k" is %d; it can be 1 to %d`, q.K, s.most)
	}
	var all []float32
	for i, x := range list {
		if len(x) != dim {
			return nil, fmt.Errorf("query %d has %d components, and the vectors have %d", i, len(x), dim)
		}
		all = append(all, x...)
	}
	return all, nil
}

func refuse(w http.ResponseWriter, status int, err error) {
	answer(w, status, map[string]string{"error": err.Error()})
}

// answer writes a document. That the other side is gone is nothing that could be reported to it.
func answer(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error": "the answer has numbers that JSON does not have"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
