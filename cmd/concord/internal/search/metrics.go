package search

// The metrics of concord search serve, as Prometheus reads them.

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/concord-compute/concord/ann"
)

// serverMetrics counts what a server does. Its registry is its own, so that no package adds to it without being
// asked. No label has a value that a client chooses: each value would stay in memory, and in the memory of what
// reads it.
type serverMetrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	running  prometheus.Gauge
	seconds  prometheus.Histogram
	queries  prometheus.Counter
	searched atomic.Int64 // nanoseconds of searches that found something
	found    atomic.Int64 // queries of these
}

func newServerMetrics(ix ann.Index, fallbacks func() int64) *serverMetrics {
	start := time.Now()
	m := &serverMetrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "concord_search_requests_total",
			Help: "Requests answered, by path and status code. The path of those that no handler takes is other."},
			[]string{"path", "code"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{Name: "concord_search_requests_in_flight",
			Help: "Requests that have begun and are not answered, with the one that reads this."}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "concord_search_duration_seconds",
			Help: "Time of a valid search request in seconds, with the wait for its turn, whether it found something or " +
				"failed.",
			Buckets: append([]float64{.0001, .00025, .0005, .001, .0025}, prometheus.DefBuckets...)}), // and on to 10 seconds
		queries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "concord_queries_total", Help: "Queries answered; a request may have several."}),
	}
	gauge := func(name, help string, f func(info ann.Info) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return f(ix.Info()) })
	}
	m.registry.MustRegister(m.requests, m.running, m.seconds, m.queries, collectors.NewGoCollector(),
		gauge("concord_index_size", "Vectors of the index.", func(info ann.Info) float64 { return float64(info.Len) }),
		gauge("concord_dimensions", "Components of a vector.", func(info ann.Info) float64 { return float64(info.Dim) }),
		gauge("concord_uptime_seconds", "Time since the server began.", func(ann.Info) float64 {
			return time.Since(start).Seconds()
		}),
		gauge("concord_query_latency_microseconds_avg", "Mean time of the search for a query, without the wait for its turn.",
			func(ann.Info) float64 {
				return float64(m.searched.Load()) / 1e3 / float64(max(m.found.Load(), 1))
			}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "concord_fallbacks_total", Help: "How often another device " +
			"stood in for the one that was asked for."},
			func() float64 { return float64(fallbacks()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "concord_distance_metric", Help: "1, for the metric of the index.",
			ConstLabels: prometheus.Labels{"metric": ix.Info().Metric}}, func() float64 { return 1 }))
	return m
}

// answered counts queries whose search took so long.
func (m *serverMetrics) answered(queries int, took time.Duration) {
	m.queries.Add(float64(queries))
	m.found.Add(int64(queries))
	m.searched.Add(int64(took))
}

// handler answers with all metrics, for at most as long as a search may take.
func (m *serverMetrics) handler(limit time.Duration) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: limit})
}

// count serves a request by h, and counts it.
func (m *serverMetrics) count(h http.Handler, w http.ResponseWriter, r *http.Request) {
	m.running.Inc()
	c := codeWriter{ResponseWriter: w}
	defer func() {
		m.running.Dec()
		_, path, ok := strings.Cut(r.Pattern, " ") // ServeMux leaves there what it chose, such as GET /info
		if !ok {
			path = "other"
		}
		if c.code == 0 { // it panicked, and the connection is closed
			c.code = http.StatusInternalServerError
		}
		m.requests.WithLabelValues(path, strconv.Itoa(c.code)).Inc()
	}()
	h.ServeHTTP(&c, r)
}

// codeWriter remembers the status code of an answer.
type codeWriter struct {
	http.ResponseWriter
	code int // 0 before there is one
}

func (c *codeWriter) WriteHeader(code int) {
	if c.code == 0 {
		c.code = code
	}
	c.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (c *codeWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *codeWriter) Write(b []byte) (int, error) {
	if c.code == 0 {
		c.code = http.StatusOK
	}
	return c.ResponseWriter.Write(b)
}
