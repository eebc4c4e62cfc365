package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"gompi/internal/atomicfile"
)

// A plan is the size of made-up ratings.
type plan struct{ Users, Films, Ratings int }

// likeMovieLens is the plan of a number of ratings, with users and films in the proportion of
// ml-latest-small: 100,836 ratings by 610 users of 9,742 films.
func likeMovieLens(ratings int) plan {
	root := math.Sqrt(float64(ratings) / smallDataset)
	return plan{int(610 * root), int(9742 * root), ratings}
}

// smallDataset is the number of ratings in ml-latest-small.
const smallDataset = 100836

// The parts of a rating: the biases of user and film, the match of a film's properties with a
// user's taste, and chance.
const (
	mean       = 3.5
	userBias   = 0.4 // deviations, in stars
	filmBias   = 0.4
	taste      = 0.7
	chance     = 0.4
	properties = 3 // in a taste and in a film
)

// made are made-up ratings.
type made struct {
	plan      plan
	seed      uint64
	lines     []line
	reachable float64
}

// makeRatings makes up ratings that depend on seed alone. Users choose films by popularity: the
// most popular film gets 400 ratings, a thousand films get nine tenths of all ratings, and half of
// the films none or one, much as in ml-latest-small.
func makeRatings(p plan, seed uint64) *made {
	m := &made{plan: p, seed: seed}
	rng := rand.New(rand.NewPCG(seed, 0x66696c6d73))
	users, films := newTraits(p.Users, userBias, 1, rng), newTraits(p.Films, filmBias, taste/math.Sqrt(properties), rng)
	var weights []float64
	sum := 0.0
	for k := range p.Films {
		sum += math.Pow(float64(k+500), -3)
		weights = append(weights, sum)
	}
	films.order = rng.Perm(p.Films)
	var square float64
	held := 0
	given := map[[2]int]bool{}
	for len(m.lines) < p.Ratings {
		user, film := rng.IntN(p.Users), films.order[search(weights, rng.Float64()*sum)]
		if given[[2]int{user, film}] {
			continue
		}
		given[[2]int{user, film}] = true
		truth := mean + users.bias[user] + films.bias[film]
		for i, v := range users.traits[user] {
			truth += v * films.traits[film][i]
		}
		stars := halfStars(truth + chance*rng.NormFloat64())
		l := line{user + 1, film + 1, stars}
		m.lines = append(m.lines, l)
		if isHeld(l.user, l.film) {
			square += math.Pow(stars-min(5, max(0.5, truth)), 2)
			held++
		}
	}
	m.reachable = math.Sqrt(square / float64(max(1, held)))
	return m
}

func halfStars(v float64) float64 { return min(5, max(0.5, math.Round(2*v)/2)) }

// search returns the first index of sums with a sum above v.
func search(sums []float64, v float64) int {
	lo, hi := 0, len(sums)-1
	for lo < hi {
		if mid := (lo + hi) / 2; sums[mid] > v {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

type traits struct {
	bias   []float64
	traits [][]float64
	order  []int // films by decreasing popularity
}

func newTraits(n int, bias, deviation float64, rng *rand.Rand) traits {
	var t traits
	for range n {
		t.bias = append(t.bias, bias*rng.NormFloat64())
		var own []float64
		for range properties {
			own = append(own, deviation*rng.NormFloat64())
		}
		t.traits = append(t.traits, own)
	}
	return t
}

// Set returns the dataset that readDataset would read from Write's files.
func (m *made) Set() *dataset {
	s := divideLines(m.lines)
	s.Reachable = m.reachable
	return s
}

// Write writes the ratings into the folder, unless it has films that are not made up, which would
// be lost. ratingsFile is last: if it exists, the others are complete. madeFile is first: after a
// kill within Write, it shows that the rest may be replaced.
func (m *made) Write(dir string) error {
	if exists(dir, moviesFile) && !exists(dir, madeFile) {
		return fmt.Errorf("the folder %s has a %s that was not made up, without %s: want both, or neither to have them made", dir, moviesFile, ratingsFile)
	}
	return atomicfile.Write(dir,
		tableFile(madeFile, "seed,reachable_rmse", func(w io.Writer) {
			fmt.Fprintf(w, "%d,%v\n", m.seed, m.reachable)
		}),
		tableFile(moviesFile, "movieId,title,genres", func(w io.Writer) {
			for i := range m.plan.Films {
				fmt.Fprintf(w, "%d,\"Film %d, made up (2000)\",(no genres listed)\n", i+1, i+1)
			}
		}),
		tableFile(ratingsFile, "userId,movieId,rating,timestamp", func(w io.Writer) {
			for i, l := range m.lines {
				fmt.Fprintf(w, "%d,%d,%.1f,%d\n", l.user, l.film, l.stars, 1000000000+i)
			}
		}))
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

func tableFile(name, header string, lines func(w io.Writer)) atomicfile.File {
	return atomicfile.File{Name: name, Write: func(w io.Writer) error {
		_, err := fmt.Fprintln(w, header)
		lines(w) // w keeps its first error
		return err
	}}
}
