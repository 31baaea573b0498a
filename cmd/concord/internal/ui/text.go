// Package ui is what people see of the commands: tables, colours, quantities, times, and the progress of long work.
package ui

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
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Bold   = "1"
)

// Paint colours s for w, if that is a terminal and NO_COLOR is unset.
func Paint(w io.Writer, code, s string) string {
	if s == "" || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !IsTerminal(w) {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Escapes matches the codes of colours in a text.
var Escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Table aligns columns. text/tabwriter would count the colours.
type Table struct{ Rows [][]string }

// NewTable returns a table with a row of titles.
func NewTable(titles ...string) *Table { return &Table{[][]string{titles}} }

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write prints the table, indented. Columns but the last are padded.
func (t *Table) Write(w io.Writer, indent string) {
	var widths []int
	for _, row := range t.Rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if i < len(row)-1 { // the last cell of a row may run over
				widths[i] = max(widths[i], Width(cell))
			}
		}
	}
	for _, row := range t.Rows {
		var b strings.Builder
		b.WriteString(indent)
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-Width(cell)+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// Width is the number of visible characters.
func Width(s string) int { return utf8.RuneCountInString(Escapes.ReplaceAllString(s, "")) }

// Quantity returns a text such as "1 epoch" or "2 entries".
func Quantity(n int, noun string) string {
	if stem, y := strings.CutSuffix(noun, "y"); n != 1 && y {
		noun = stem + "ies"
	} else if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Milliseconds converts for JSON.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// DurationText returns a text such as "0.42 ms" or "1.3 s".
func DurationText(d time.Duration) string {
	switch m := Milliseconds(d); {
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

// OneLine joins a text to one line for a table.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Duration converts milliseconds of JSON.
func Duration(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// FirstLine returns the first line that is not empty.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

// CountText returns a number as text, or "?" for 0, which means that it is unknown.
func CountText(n int) string {
	if n == 0 {
		return "?"
	}
	return strconv.Itoa(n)
}

// Readable returns a text of a file as it may reach a terminal: quoted, if it has characters that
// do not show or could be taken for the end of it.
func Readable(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) || r == '"' || r == '\ufffd' }) ||
		strings.TrimSpace(s) != s {
		return strconv.Quote(s)
	}
	return s
}

// shownText is the number of characters of a text of the metadata that a table shows.
const shownText = 100

// Shortened returns the beginning of a long text, with an ellipsis.
func Shortened(s string) string {
	if runes := []rune(s[:min(len(s), 4*shownText+4)]); len(runes) > shownText {
		return string(runes[:shownText]) + "…"
	}
	return s
}

// ShapeText returns a text such as "[2, 3]".
func ShapeText(shape []int) string {
	return strings.ReplaceAll(fmt.Sprint(shape), " ", ", ")
}
