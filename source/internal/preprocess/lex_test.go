package preprocess

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/concord-compute/concord/source/internal/token"
)

// lexed returns every token of text as kind:text, with lines separated by "|".
func lexed(text string) (toks, mistakes []string) {
	names := map[token.Kind]string{token.Ident: "id", token.Int: "int", token.Float: "float", token.Char: "char",
		token.String: "str", token.Punct: "op", tokOther: "other"}
	l := newLexer("t.cl", text, func(pos token.Pos, _, msg string) { mistakes = append(mistakes, pos.String()+": "+msg) })
	for {
		switch t := l.next(); t.Kind {
		case token.EOF:
			return toks, mistakes
		case token.Newline:
			toks = append(toks, "|")
		default:
			toks = append(toks, names[t.Kind]+":"+t.Text)
		}
	}
}

func TestLex(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"", nil},
		{"a", []string{"id:a", "|"}},
		{"a\n\nb\n", []string{"id:a", "|", "|", "id:b", "|"}},
		{"_x1 $y L", []string{"id:_x1", "id:$y", "id:L", "|"}},
		{"a+++b", []string{"id:a", "op:++", "op:+", "id:b", "|"}},
		{"<<=>>=->...", []string{"op:<<=", "op:>>=", "op:->", "op:...", "|"}},
		{"..1..", []string{"op:.", "float:.1..", "|"}},
		{"%:%:%:%>", []string{"op:%:%:", "op:%:", "op:%>", "|"}},
		{"1 0x1e+2 1e+2 0x1p-3 .5f 12abc 1.e", []string{"int:1", "int:0x1e+2", "float:1e+2", "float:0x1p-3", "float:.5f",
			"int:12abc", "float:1.e", "|"}},
		{`"a\"b" 'c' '\'' L"w" L'c'`, []string{`str:"a\"b"`, "char:'c'", `char:'\''`, `str:L"w"`, "char:L'c'", "|"}},
		{"don't\nx", []string{"id:don", "other:'t", "|", "id:x", "|"}},
		{`"ab\`, []string{`other:"ab\`, "|"}},
		{"a/**/b//c\nd/*\n*/e", []string{"id:a", "id:b", "|", "id:d", "id:e", "|"}},
		{"/ /=*/", []string{"op:/", "op:/=", "op:*", "op:/", "|"}},
		{"@`\\é\x80\x00", []string{"other:@", "other:`", "other:\\", "other:é", "other:\x80", "other:\x00", "|"}},
		{"a\\\nb\\  \r\nc\r\rd", []string{"id:abc", "|", "|", "id:d", "|"}},
		{"/\\\n/ x\ny", []string{"|", "id:y", "|"}},
		{"\\\n", nil},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%q", test.text), func(t *testing.T) {
			got, mistakes := lexed(test.text)
			assert.Equal(t, test.want, got)
			assert.Empty(t, mistakes)
		})
	}
	_, mistakes := lexed("a\n /* b\n")
	assert.Equal(t, []string{"t.cl:2:2: comment is not closed"}, mistakes)
}

func TestErrorList(t *testing.T) {
	var list token.ErrorList
	assert.NoError(t, list.Err())
	pos := token.Pos{File: "k.cl", Line: 3, Col: 7}
	assert.True(t, list.Add(pos, "cast", "bad %s", "cast"))
	assert.True(t, list.Add(pos, "cast", "bad %s", "cast"), "the same again is dropped")
	assert.True(t, list.Add(pos, "cast", "worse"))
	assert.EqualError(t, list.Err(), "k.cl:3:7: bad cast\nk.cl:3:7: worse")

	var first *token.Error
	assert.True(t, errors.As(fmt.Errorf("parse: %w", list.Err()), &first))
	assert.Equal(t, "cast", first.Construct)

	for i := range token.MaxErrors - 3 {
		assert.True(t, list.Add(pos, "", "%d", i))
	}
	assert.False(t, list.Add(pos, "", "the last one"))
	assert.False(t, list.Add(pos, "", "too many"))
	assert.Len(t, list, token.MaxErrors)
}
