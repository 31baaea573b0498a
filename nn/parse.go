package nn

// Networks described in JSON.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// layersByName are the layers that a description may have, by their names. Activations are layers, too, by theirs.
var layersByName = map[string]Layer{
	"dense": Dense{}, "embedding": Embedding{}, "position": Position{}, "dropout": Dropout{}, "flatten": Flatten{},
	"reshape": Reshape{}, "scale": Scale{},
	"residual": Residual{}, "conv": Conv{}, "max_pool": MaxPool{}, "avg_pool": AvgPool{},
	"global_max_pool": GlobalMaxPool{}, "global_avg_pool": GlobalAvgPool{},
	"batch_norm": BatchNorm{}, "layer_norm": LayerNorm{}, "rms_norm": RMSNorm{}, "group_norm": GroupNorm{},
	"prelu": PReLU{},
	"rnn":   RNN{}, "gru": GRU{}, "lstm": LSTM{}, "attention": Attention{}, "transformer": Transformer{},
}

var initsByName = map[string]Init{
	"zeros": Zeros, "xavier_uniform": XavierUniform, "xavier_normal": XavierNormal, "he_uniform": HeUniform,
	"he_normal":     HeNormal,
	"lecun_uniform": LeCunUniform, "lecun_normal": LeCunNormal,
}

// LayersFromJSON returns the layers that a text describes in JSON: a list of objects, each with the name of a
// layer and its fields,
//
//	[{"layer": "flatten"}, {"layer": "dense", "out": 256, "act": "relu"}, {"layer": "dense", "out": 10}]
//
// Names are those of this package in lower case with underscores: "max_pool", "key_heads". A layer may also be
// an activation, by its name, and a field that is a layer may be a list, which is a [Sequence]. First values
// are named, such as "he_uniform", or a number, the standard deviation of [Gaussian]. A name or a field that
// does not exist is an error that matches [ErrConfig] and lists those that do.
func LayersFromJSON(text []byte) ([]Layer, error) {
	layers, err := layersFromJSON(text, "network")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if len(layers) == 0 {
		return nil, fmt.Errorf("%w: a network without layers", ErrConfig)
	}
	return layers, nil
}

func layersFromJSON(text []byte, place string) (Sequence, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		if mistake, ok := errors.AsType[*json.SyntaxError](err); ok {
			line := 1 + bytes.Count(text[:min(max(int(mistake.Offset)-1, 0), len(text))], []byte("\n"))
			return nil, fmt.Errorf("%s: a list of layers in JSON: line %d: %w", place, line, err)
		}
		return nil, fmt.Errorf("%s: a list of layers in JSON is needed, not %s", place, short(text))
	}
	var layers Sequence
	for i, part := range list {
		l, err := parseLayer(part, fmt.Sprintf("%s[%d]", place, i))
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	return layers, nil
}

// parseLayer returns the layer of an object, or of a list.
func parseLayer(text []byte, place string) (Layer, error) {
	if text = bytes.TrimSpace(text); bytes.HasPrefix(text, []byte("[")) {
		return layersFromJSON(text, place)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("%s: an object with the name of a layer and its fields is needed, not %s", place, short(text))
	}
	var name string
	if err := json.Unmarshal(fields["layer"], &name); err != nil {
		return nil, fmt.Errorf("%s: no name of a layer in %q", place, "layer")
	}
	delete(fields, "layer")
	zero := layersByName[name]
	if a := Activation(name); zero == nil && activations[a] != nil {
		zero = a
	}
	if zero == nil {
		return nil, fmt.Errorf("%s: no layer %q; there are %v and the activations %v", place, name,
			slices.Sorted(maps.Keys(layersByName)), Activations())
	}
	layer := reflect.New(reflect.TypeOf(zero)).Elem()
	layer.Set(reflect.ValueOf(zero))
	places, names := map[string]reflect.Value{}, []string{}
	if layer.Kind() == reflect.Struct {
		for i := range layer.NumField() {
			field := underscored(layer.Type().Field(i).Name)
			places[field], names = layer.Field(i), append(names, field)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		to, ok := places[field]
		if !ok {
			return nil, fmt.Errorf("%s: %s has no field %q; it has %q", place, name, field, names)
		}
		if err := setField(to, fields[field], place+"."+field); err != nil {
			return nil, err
		}
	}
	return layer.Interface().(Layer), nil
}

// setField gives a field of a layer the value of a text.
func setField(to reflect.Value, text []byte, place string) error {
	if string(text) == "null" { // which would leave the field, or be a deviation of 0
		return fmt.Errorf("%s: null is no value; leave the field out", place)
	}
	switch to.Type() {
	case reflect.TypeFor[Layer]():
		l, err := parseLayer(text, place)
		if err == nil {
			to.Set(reflect.ValueOf(l))
		}
		return err
	case reflect.TypeFor[Init]():
		var std float64
		if json.Unmarshal(text, &std) == nil {
			to.Set(reflect.ValueOf(Gaussian(std)))
			return nil
		}
		var name string
		if err := json.Unmarshal(text, &name); err != nil || initsByName[name] == nil {
			return fmt.Errorf("%s: %s is no number, and none of %q", place, text, slices.Sorted(maps.Keys(initsByName)))
		}
		to.Set(reflect.ValueOf(initsByName[name]))
		return nil
	}
	if err := json.Unmarshal(text, to.Addr().Interface()); err != nil {
		of := to.Type()
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		what := of.Kind().String()
		if word, ok := kinds[what]; ok {
			what = word
		}
		return fmt.Errorf("%s: %s is no %s", place, short(text), what)
	}
	return nil
}

// kinds has for each kind of a field in Go the word for its value in JSON, for messages.
var kinds = map[string]string{"int": "whole number", "float64": "number", "string": "name",
	"bool": "truth value: true or false", "slice": "list of whole numbers"}

// short returns the beginning of a text for a message.
func short(text []byte) string {
	const most = 40
	if text = bytes.TrimSpace(text); len(text) > most {
		return strings.ToValidUTF8(string(text[:most]), "") + "..."
	}
	return string(text)
}

// underscored returns a name such as "KeyHeads" as "key_heads".
func underscored(name string) string {
	var b strings.Builder
	for i, r := range name {
		if lower := r | 0x20; lower != r {
			if i > 0 {
				b.WriteByte('_')
			}
			r = lower
		}
		b.WriteRune(r)
	}
	return b.String()
}
