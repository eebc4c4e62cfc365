package main

import (
	"cmp"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The files of MovieLens, and another file of made-up ratings.
const (
	ratingsFile = "ratings.csv" // userId,movieId,rating,timestamp
	moviesFile  = "movies.csv"  // movieId,title,genres
	madeFile    = "made-up.csv" // seed,reachable_rmse
)

// A ratingList is ratings. Users and films have numbers from 0 on, unlike in the files.
type ratingList struct {
	Users, Films []int32
	Stars        []float32
}

func (l *ratingList) add(user, film int32, stars float32) {
	l.Users, l.Films, l.Stars = append(l.Users, user), append(l.Films, film), append(l.Stars, stars)
}

// A dataset is the ratings of a folder, in two parts.
type dataset struct {
	Users, Films int // numbers of users and films with ratings in either part
	Learnt, Held ratingList
	Reachable    float64 // error on Held of the model that made the ratings; 0: unknown
}

// Checksum identifies sets: a CRC-32C of all ratings.
func (s *dataset) Checksum() uint32 {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	var b []byte
	for _, l := range []ratingList{s.Learnt, s.Held} {
		for i, stars := range l.Stars {
			b = b[:0]
			for _, n := range [3]uint32{uint32(l.Users[i]), uint32(l.Films[i]), math.Float32bits(stars)} {
				b = binary.LittleEndian.AppendUint32(b, n)
			}
			sum.Write(b)
		}
	}
	return sum.Sum32()
}

// isHeld reports whether a rating is held out, as a fifth of them are. The choice depends on the
// numbers of user and film in the files, not on the order of lines.
func isHeld(user, film int) bool {
	return crc32.ChecksumIEEE(fmt.Appendf(nil, "%d,%d", user, film))%5 == 0
}

// A line is a line of ratingsFile.
type line struct {
	user, film int
	stars      float64
}

// readDataset returns the ratings in the folder whose films are in moviesFile.
func readDataset(dir string) (*dataset, error) {
	films := map[int]bool{}
	err := readTable(filepath.Join(dir, moviesFile), "movieId,title,genres", func(fields []string) error {
		film, err := parseNumber(fields[0])
		films[film] = true
		return err
	})
	if err != nil {
		return nil, err
	}
	var lines []line
	path := filepath.Join(dir, ratingsFile)
	err = readTable(path, "userId,movieId,rating,timestamp", func(fields []string) error {
		l, err := parseLine(fields)
		if films[l.film] {
			lines = append(lines, l)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s := divideLines(lines)
	if len(s.Learnt.Stars) == 0 || len(s.Held.Stars) == 0 {
		return nil, fmt.Errorf("%s: %d ratings of films in %s: want enough to train on and to hold out", path,
			len(lines), moviesFile)
	}
	s.Reachable, err = readReachable(filepath.Join(dir, madeFile))
	return s, err
}

// readTable calls each with the fields of every line after the first, which must be header.
func readTable(path, header string, each func(fields []string) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.ReuseRecord = true
	first, err := r.Read()
	if got := strings.TrimPrefix(strings.Join(first, ","), "\ufeff"); err == nil && got != header || err == io.EOF {
		return fmt.Errorf("%s begins with %q: want %q", path, got, header)
	}
	for err == nil {
		var fields []string
		if fields, err = r.Read(); err == nil {
			if err = each(fields); err != nil {
				at, _ := r.FieldPos(0)
				err = fmt.Errorf("line %d: %w", at, err)
			}
		}
	}
	if err != io.EOF {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func parseNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("number %q: want one that is not negative", s)
	}
	return n, nil
}

func parseLine(fields []string) (l line, err error) {
	var users, films, stars error
	l.user, users = parseNumber(fields[0])
	l.film, films = parseNumber(fields[1])
	if l.stars, stars = strconv.ParseFloat(fields[2], 64); stars != nil || !(l.stars >= 0.5 && l.stars <= 5) {
		stars = fmt.Errorf("rating %q: want 0.5 to 5", fields[2])
	}
	return l, errors.Join(users, films, stars)
}

// divideLines numbers users and films in the order of their numbers in the files.
func divideLines(lines []line) *dataset {
	users := places(lines, func(l line) int { return l.user })
	films := places(lines, func(l line) int { return l.film })
	s := &dataset{Users: len(users), Films: len(films)}
	for _, l := range lines {
		to := &s.Learnt
		if isHeld(l.user, l.film) {
			to = &s.Held
		}
		to.add(users[l.user], films[l.film], float32(l.stars))
	}
	return s
}

func places(lines []line, of func(line) int) map[int]int32 {
	var all []int
	for _, l := range lines {
		all = append(all, of(l))
	}
	slices.SortFunc(all, cmp.Compare)
	at := map[int]int32{}
	for i, id := range slices.Compact(all) {
		at[id] = int32(i)
	}
	return at
}

func readReachable(path string) (rmse float64, err error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	err = readTable(path, "seed,reachable_rmse", func(fields []string) error {
		rmse, err = strconv.ParseFloat(fields[1], 64)
		return err
	})
	return rmse, err
}
