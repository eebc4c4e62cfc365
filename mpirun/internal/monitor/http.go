package monitor

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Bounds of messages, in bytes.
const (
	mostRequest  = 8 << 10
	mostResponse = 64 << 20 // some hundred thousand ranks
)

// interim acknowledges a request for the end of the job: from then on the end is not missed.
const interim = "HTTP/1.1 100 Continue\r\n\r\n"

// readRequest reads the head of a request, and returns its method and target.
func readRequest(r io.Reader) (method, target string, err error) {
	head := bufio.NewReader(io.LimitReader(r, mostRequest))
	first, err := readHead(head, func(string) {})
	if err != nil {
		return "", "", err
	}
	words := strings.Fields(first)
	if len(words) != 3 || !strings.HasPrefix(words[2], "HTTP/1.") {
		return "", "", fmt.Errorf("%.80q: want a request in HTTP/1.1", first)
	}
	return words[0], words[1], nil
}

// readHead reads lines up to the empty line. It returns the first, and calls field with the
// others.
func readHead(r *bufio.Reader, field func(line string)) (first string, err error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", fmt.Errorf("the head of the message: %w", noEOF(err))
		}
		switch line = strings.TrimRight(line, "\r\n"); {
		case line == "" && first == "":
			return "", fmt.Errorf("the message begins with an empty line")
		case line == "":
			return first, nil
		case first == "":
			first = line
		default:
			field(line)
		}
	}
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func writeRequest(w io.Writer, method, target string) error {
	_, err := fmt.Fprintf(w, "%s %s HTTP/1.1\r\nHost: gompi\r\nConnection: close\r\n\r\n", method, target)
	return err
}

func writeResponse(w io.Writer, a response) {
	fmt.Fprintf(w, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		a.status, a.kind, len(a.body), a.body)
}

// readResponse returns the body of a response, or its error.
func readResponse(r io.Reader) ([]byte, error) {
	in, length := bufio.NewReader(io.LimitReader(r, mostResponse)), -1
	first, err := readHead(in, func(line string) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(name, "Content-Length") {
			length, _ = strconv.Atoi(strings.TrimSpace(value))
		}
	})
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(in)
	if err == nil && len(body) != length {
		err = fmt.Errorf("%d bytes of %d have arrived", len(body), length)
	}
	if err != nil {
		return nil, err
	}
	words := strings.Fields(first)
	if len(words) < 2 || words[1] != "200" {
		return nil, fmt.Errorf("it answers %.200q", strings.TrimSpace(string(body)))
	}
	return body, nil
}
