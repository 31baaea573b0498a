package main

// Output as text: tables, colours, sizes and times.

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The colours, as ANSI codes.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
)

func paintFor(w io.Writer, code, s string) string {
	if s == "" || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !isTerminal(w) {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// table aligns columns. text/tabwriter would count the colours.
type table struct{ rows [][]string }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table, indented. Columns but the last are padded.
func (t *table) write(w io.Writer, indent string) {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if i < len(row)-1 { // the last cell of a row may run over
				widths[i] = max(widths[i], width(cell))
			}
		}
	}
	for _, row := range t.rows {
		var b strings.Builder
		b.WriteString(indent)
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-width(cell)+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// width is the number of visible characters.
func width(s string) int { return utf8.RuneCountInString(escapes.ReplaceAllString(s, "")) }

// quantity returns a text such as "1 epoch" or "2 entries".
func quantity(n int, noun string) string {
	if stem, y := strings.CutSuffix(noun, "y"); n != 1 && y {
		noun = stem + "ies"
	} else if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// milliseconds converts for JSON.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ms returns a text such as "0.42 ms" or "1.3 s".
func ms(d time.Duration) string {
	switch m := milliseconds(d); {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case m >= 100:
		return fmt.Sprintf("%.0f ms", m)
	case m >= 1:
		return fmt.Sprintf("%.1f ms", m)
	default:
		return fmt.Sprintf("%.3f ms", m)
	}
}

// oneLine joins a text to one line for a table.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func duration(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// firstLine returns the first line that is not empty.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

func count(n int) string {
	if n == 0 {
		return "?"
	}
	return strconv.Itoa(n)
}

// readable returns a text of a file as it may reach a terminal: quoted, if it has characters that
// do not show or could be taken for the end of it.
func readable(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) || r == '"' || r == '\ufffd' }) ||
		strings.TrimSpace(s) != s {
		return strconv.Quote(s)
	}
	return s
}

// shownText is the number of characters of a text of the metadata that a table shows.
const shownText = 100

func shortened(s string) string {
	if runes := []rune(s[:min(len(s), 4*shownText+4)]); len(runes) > shownText {
		return string(runes[:shownText]) + "…"
	}
	return s
}

// shapeText returns a text such as "[2, 3]".
func shapeText(shape []int) string {
	return strings.ReplaceAll(fmt.Sprint(shape), " ", ", ")
}
