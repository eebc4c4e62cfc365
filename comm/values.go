package comm

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"reflect"
)

// SendValue sends a value of any type that package encoding/gob encodes, such as a string, a map or
// a slice whose length the receiver does not know. RecvValue receives it. SendValue is slower than
// Send: it encodes and allocates, some microseconds for a short value; the message is sent as one
// of bytes, as by Send, which describes blocking and errors. An unencodable value is an error before
// anything is sent.
func SendValue[T any](ctx context.Context, c *Comm, to, tag int, value T) error {
	var encoded bytes.Buffer
	if err := encode(&encoded, &value); err != nil {
		return fmt.Errorf("send to rank %d, tag %d: value of type %T: %w", to, tag, value, err)
	}
	return Send(ctx, c, to, tag, encoded.Bytes())
}

// encode encodes the value at a pointer. A nil pointer there has no encoding: gob would send the zero
// value, or panic.
func encode(w *bytes.Buffer, value any) error {
	for v := reflect.ValueOf(value); v.Kind() == reflect.Pointer; v = v.Elem() {
		if v.IsNil() {
			return errors.New("a nil pointer has no encoding")
		}
	}
	return gob.NewEncoder(w).Encode(value)
}

// RecvValue receives a value of SendValue, and takes memory for it; from may be AnySource and tag
// AnyTag, as with Recv. The types of both ranks may differ as encoding/gob allows. A message that
// is no value of type T is received all the same, and is an error that names its source.
func RecvValue[T any](ctx context.Context, c *Comm, from, tag int) (value T, st Status, err error) {
	m, err := c.Mprobe(ctx, from, tag)
	if err != nil {
		return value, st, err
	}
	encoded := make([]byte, m.Bytes)
	if st, err = m.Recv(ctx, Of(encoded)); err != nil || st.Source == ProcNull {
		return value, st, err
	}
	if err := gob.NewDecoder(bytes.NewReader(encoded)).Decode(&value); err != nil {
		return value, st, fmt.Errorf("message of %d bytes from rank %d, tag %d: no value of type %T: %w", len(encoded),
			st.Source, st.Tag, value, err)
	}
	return value, st, nil
}
