package main

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const moviesTable = `movieId,title,genres
1,Toy Story (1995),Adventure|Animation|Children|Comedy|Fantasy
11,"American President, The (1995)",Comedy|Drama|Romance
189,"Quote ""in"" a title",(no genres listed)
7,Nobody rates this,Drama
`

func writeTables(t *testing.T, ratings, movies string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{ratingsFile: ratings, moviesFile: movies} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Lines are as in ml-latest-small: quotes in titles, numbers with gaps, in any order. Film 99 is in
// no list of films.
func TestFilesOfMovieLensAreRead(t *testing.T) {
	dir := writeTables(t, "userId,movieId,rating,timestamp\r\n5,11,4.0,964982703\r\n1,189,0.5,964981247\r\n5,1,5.0,964982224\r\n7,1,3.5,1\r\n7,11,2.0,1\r\n7,99,1.0,1\r\n", moviesTable)
	s, err := readDataset(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.Users != 3 || s.Films != 3 || s.Reachable != 0 {
		t.Errorf("%d users, %d films, reachable error %v; want 3, 3 and 0", s.Users, s.Films, s.Reachable)
	}
	got := map[[2]int32]float32{}
	for _, l := range []ratingList{s.Learnt, s.Held} {
		for i := range l.Stars {
			got[[2]int32{l.Users[i], l.Films[i]}] = l.Stars[i]
		}
	}
	want := map[[2]int32]float32{{1, 1}: 4, {0, 2}: 0.5, {1, 0}: 5, {2, 0}: 3.5, {2, 1}: 2}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("ratings are %v, want %v", got, want)
	}
	if held := isHeld(5, 11); held != (len(s.Held.Stars) > 0 && contains(s.Held, 1, 1)) {
		t.Errorf("the rating of film 11 by user 5 is held out, says Held: %v", held)
	}
}

func contains(l ratingList, user, film int32) bool {
	for i := range l.Stars {
		if l.Users[i] == user && l.Films[i] == film {
			return true
		}
	}
	return false
}

func TestDamagedLinesAreNamedAndQuoted(t *testing.T) {
	const head = "userId,movieId,rating,timestamp\n"
	for ratings, want := range map[string]string{
		"":                              `begins with ""`,
		"user,item\n":                   `begins with "user,item": want "userId,movieId,rating,timestamp"`,
		head + "1,1,4.0,1\n1,x,4.0,1\n": `line 3: number "x"`,
		head + "1,-1,4.0,1\n":           `line 2: number "-1"`,
		head + "1,1,5.5,1\n":            `line 2: rating "5.5": want 0.5 to 5`,
		head + "1,1,NaN,1\n":            `line 2: rating "NaN"`,
		head + "1,1,4.0\n":              "wrong number of fields",
		head:                            "0 ratings of films in movies.csv: want enough",
	} {
		dir := writeTables(t, ratings, moviesTable)
		if _, err := readDataset(dir); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), filepath.Join(dir, ratingsFile)) {
			t.Errorf("%q: error %v, want %q", ratings, err, want)
		}
	}
	if _, err := readDataset("/no/such/folder"); err == nil ||
		!strings.Contains(err.Error(), "/no/such/folder/movies.csv: no such file") {
		t.Errorf("a missing folder gives error %v", err)
	}
}

func TestMadeRatingsAreThoseOfTheirFiles(t *testing.T) {
	m := makeRatings(plan{40, 60, 900}, 3)
	dir := filepath.Join(t.TempDir(), "made")
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := readDataset(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := m.Set(); !reflect.DeepEqual(got, want) {
		t.Errorf("read again the ratings differ")
	}
	if n := len(got.Learnt.Stars) + len(got.Held.Stars); n != 900 || len(got.Held.Stars) < 100 ||
		len(got.Held.Stars) > 260 {
		t.Errorf("%d of %d ratings are held out, want a fifth of 900", len(got.Held.Stars), n)
	}
	if reflect.DeepEqual(makeRatings(plan{40, 60, 900}, 4).Set(), m.Set()) {
		t.Error("another seed makes the same ratings")
	}
}

// The defaults have the size and the shape of ml-latest-small: 610 users, 9,724 films with ratings,
// of which the best known has 329. A model without the noise beats biases, and these the mean.
func TestMadeRatingsAreLikeTheRealOnes(t *testing.T) {
	s := makeRatings(likeMovieLens(smallDataset), 1).Set()
	counts := make([]int, s.Films)
	for _, l := range []ratingList{s.Learnt, s.Held} {
		for _, f := range l.Films {
			counts[f]++
		}
	}
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	if s.Users != 610 || s.Films < 3000 || s.Films > 9742 || most < 200 || most > 500 {
		t.Errorf("%d users, %d films, the best known with %d ratings", s.Users, s.Films, most)
	}
	mean, _ := s.MeanError()
	if bias := s.BiasError(); !(s.Reachable < 0.45 && s.Reachable > 0.38 && bias > 1.5*s.Reachable && mean > 1.1*bias) {
		t.Errorf("errors: of the model %.3f, of biases %.3f, of the mean %.3f", s.Reachable, bias, mean)
	}
}

// Two users and two films without noise: biases explain all, except for their regularization.
func TestBiasesAreEstimated(t *testing.T) {
	s := &dataset{Users: 2, Films: 2}
	for range 500 {
		for u := range int32(2) {
			for f := range int32(2) {
				s.Learnt.add(u, f, 3+float32(u)-2*float32(f))
				s.Held.add(u, f, 3+float32(u)-2*float32(f))
			}
		}
	}
	rmse, mean := s.MeanError()
	if mean != 2.5 || math.Abs(rmse-math.Sqrt(1.25)) > 1e-9 {
		t.Errorf("mean %v with error %v, want 2.5 and the root of 1.25", mean, rmse)
	}
	if bias := s.BiasError(); bias > 0.02 {
		t.Errorf("error of biases is %v, want about 0", bias)
	}
}

// ratingsFile shows that ratings are there, so it comes last: here a folder is in its way.
func TestRatingsComeAfterAllElse(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ratingsFile, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := makeRatings(plan{Users: 5, Films: 5, Ratings: 20}, 1).Write(dir); err == nil ||
		!strings.Contains(err.Error(), ratingsFile) {
		t.Errorf("error %v, want one that names %s", err, ratingsFile)
	}
	for _, name := range []string{moviesFile, madeFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// Files left by a Write that was killed between two names are replaced; a user's films are not.
func TestOnlyFilesThatAreMadeUpAreReplaced(t *testing.T) {
	made := makeRatings(plan{Users: 5, Films: 5, Ratings: 20}, 1)
	for _, tt := range []struct {
		there []string
		fails bool
	}{
		{[]string{madeFile}, false},
		{[]string{madeFile, moviesFile}, false},
		{[]string{moviesFile}, true},
	} {
		dir := t.TempDir()
		for _, name := range tt.there {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		err := made.Write(dir)
		if fails := err != nil && strings.Contains(err.Error(), moviesFile+" that was not made up"); fails != tt.fails {
			t.Errorf("%q are there: error %v, want one: %v", tt.there, err, tt.fails)
		}
		data, _ := os.ReadFile(filepath.Join(dir, moviesFile))
		if kept := string(data) == "old"; kept != tt.fails {
			t.Errorf("%q are there: the films are kept: %v, want %v", tt.there, kept, tt.fails)
		}
	}
}

func TestChecksumDistinguishesRatings(t *testing.T) {
	p := plan{Users: 5, Films: 5, Ratings: 20}
	a, b, other := makeRatings(p, 1).Set(), makeRatings(p, 1).Set(), makeRatings(p, 2).Set()
	if a.Checksum() != b.Checksum() || a.Checksum() == other.Checksum() {
		t.Errorf("checksums %08x, %08x of the same and %08x of others", a.Checksum(), b.Checksum(), other.Checksum())
	}
}
