// Command movielens predicts how many stars a user gives a film:
//
//	gompirun -np 4 movielens -data ml-latest-small
//
// reads ratings.csv and movies.csv of MovieLens from this folder; "movielens -data ml-latest-small
// -gen" only writes similar files. Without -data it makes ratings up, by a model whose error is
// known: no other can be better.
//
// A user and a film have a learnt vector each (an embedding). A prediction is linear in these two
// and in their product, number by number. A batch reaches few of the vectors, so the gradient is
// sparse: only these rows of the tables travel between ranks, unless -sparse=false.
//
// The optimiser is AdamW. A tutorial's recommender of this kind has a rate of 0.001 and a decay of
// 0.01. Both are larger here, for a lower error on made-up ratings after 10 epochs.
//
// Reading order: Learn below; data.go has the input of rank 0 and its distribution; the loop over
// batches is in examples/internal/job, train.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/examples/internal/job"
	"gompi/examples/internal/nn"
)

const purpose = `Trains a recommender: MovieLens's ratings with -data, else made-up ones. Alone, or under gompirun
with as many ranks as one likes.`

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	f, o := defaults()
	parse := func() error {
		if err := f.Parse("movielens", purpose, args, stdout, func(fs *flag.FlagSet) { o.define(fs) }); err != nil {
			return err
		}
		return o.check()
	}
	return job.Run("movielens", stdout, stderr, parse, func(ctx context.Context, c *comm.Comm, out io.Writer) error {
		if o.write {
			return ddp.OnRankZero(ctx, c, func() error { return o.generate(f.Seed, out) })
		}
		_, err := train(ctx, c, &f, o, out)
		return err
	})
}

func defaults() (job.Flags, options) {
	return job.Flags{Epochs: 10, Batch: 256, BatchPer: "rank", Rate: 3e-3, Seed: 1, Resume: "auto"},
		options{sparse: true, width: 64, decay: 0.3, plan: likeMovieLens(smallDataset)}
}

func train(ctx context.Context, c *comm.Comm, f *job.Flags, o options, out io.Writer) (*job.Result, error) {
	set, err := o.share(ctx, c, f.Seed, out)
	if err != nil {
		return nil, err
	}
	m := newModel(set, f, o, nn.WorkersOf(c.Size()))
	rmse := job.Meter{Name: "RMSE", Show: func(mean float64) string { return fmt.Sprintf("%.4f", math.Sqrt(mean)) }}
	res, err := job.Train(ctx, c, f, m, job.Spec{
		Samples: len(set.Learnt.Stars), Held: len(set.Held.Stars), Checksum: set.Checksum(), Meters: []job.Meter{rmse},
	}, out)
	if err != nil {
		return nil, err
	}
	simple, _ := set.MeanError()
	fmt.Fprintf(out, "result: RMSE %s of ratings held out; the mean %.4f, users and films apart %.4f",
		rmse.Show(res.Held[0]), simple, set.BiasError())
	if set.Reachable > 0 {
		fmt.Fprintf(out, "; the model that made them %.4f", set.Reachable)
	}
	if res.Own > 0 {
		fmt.Fprintf(out, "; gradients: %.1f KB a step and rank", float64(res.Bytes)/float64(res.Own)/1e3)
	}
	fmt.Fprintln(out)
	return res, nil
}

// A model is the recommender, its optimiser and the ratings.
type model struct {
	set          *dataset
	users, films *nn.Embedding[int32]
	linear       *nn.Linear
	adam         *nn.Adam
	rate         float64
	sparse       bool
	width        int

	userIDs, filmIDs []int32 // of the loaded ratings
	stars            []float32
	u, v, x          nn.Matrix // vectors of their users and films, and input of the linear layer
}

// The parameters, in the order of Params.
const (
	usersParam = iota
	filmsParam
	linearParam
)

func newModel(set *dataset, f *job.Flags, o options, workers nn.Workers) *model {
	rng := rand.New(rand.NewPCG(f.Seed, 0x6d6f76696573))
	w := o.width
	m := &model{set: set, rate: f.Rate, sparse: o.sparse, width: w,
		users:  nn.NewEmbedding[int32]("users", set.Users, w, 1, 0.1, rng),
		films:  nn.NewEmbedding[int32]("films", set.Films, w, 1, 0.1, rng),
		linear: nn.NewLinear("linear", 3*w, 1, 0.1, workers, rng)}
	// The first guess is the mean, with a little of the product of user and film.
	_, mean := set.MeanError()
	m.linear.Bias.Data[0] = float32(mean)
	for i := range w {
		m.linear.Weight.Data[2*w+i] = 1
	}
	if m.sparse {
		m.users.Table.Row, m.films.Table.Row = w, w
	}
	m.adam = nn.NewAdam(m.Params())
	m.adam.Decay = o.decay
	return m
}

func (m *model) Params() []*ddp.Param {
	return append([]*ddp.Param{m.users.Table, m.films.Table}, m.linear.Params()...)
}

func (m *model) Memory() []ddp.Slice { return m.adam.Memory() }

func (m *model) Load(samples []int, held bool) {
	list := &m.set.Learnt
	if held {
		list = &m.set.Held
	}
	m.userIDs, m.filmIDs, m.stars = m.userIDs[:0], m.filmIDs[:0], m.stars[:0]
	for _, at := range samples {
		m.userIDs, m.filmIDs = append(m.userIDs, list.Users[at]), append(m.filmIDs, list.Films[at])
		m.stars = append(m.stars, list.Stars[at])
	}
}

// forward returns the predictions.
func (m *model) forward() nn.Matrix {
	m.u, m.v = m.users.Forward(m.userIDs), m.films.Forward(m.filmIDs)
	w := m.width
	m.x = nn.NewMatrix(m.u.Rows, 3*w)
	for i := range m.u.Rows {
		u, v, x := m.u.Data[i*w:][:w], m.v.Data[i*w:][:w], m.x.Data[i*3*w:][:3*w]
		copy(x, u)
		copy(x[w:], v)
		for j := range u {
			x[2*w+j] = u[j] * v[j]
		}
	}
	return m.linear.Forward(m.x)
}

func (m *model) Learn(d *ddp.DDP, scale float32) []float64 {
	y := m.forward()
	loss := nn.SquaredError(y, m.stars, scale)
	m.linear.Backward(y)
	d.Ready(linearParam + 1)
	d.Ready(linearParam)
	du, dv := m.split(m.linear.InputGradient(y))
	m.ready(d, filmsParam, m.films, m.filmIDs, dv)
	m.ready(d, usersParam, m.users, m.userIDs, du)
	return []float64{loss}
}

// split returns the gradients by the vectors of users and films. dx is the gradient by the input.
func (m *model) split(dx nn.Matrix) (du, dv nn.Matrix) {
	w := m.width
	du, dv = nn.NewMatrix(dx.Rows, w), nn.NewMatrix(dx.Rows, w)
	for i := range dx.Rows {
		u, v, d := m.u.Data[i*w:][:w], m.v.Data[i*w:][:w], dx.Data[i*3*w:][:3*w]
		for j := range u {
			du.Data[i*w+j] = d[j] + d[2*w+j]*v[j]
			dv.Data[i*w+j] = d[w+j] + d[2*w+j]*u[j]
		}
	}
	return du, dv
}

// ready announces the gradient of a table: as rows, or as the whole table.
func (m *model) ready(d *ddp.DDP, param int, e *nn.Embedding[int32], ids []int32, dy nn.Matrix) {
	if m.sparse {
		d.ReadyRows(param, ids, dy.Data)
		return
	}
	e.Backward(dy)
	d.Ready(param)
}

func (m *model) Judge() []float64 {
	return []float64{nn.SquaredError(m.forward(), m.stars, 0)}
}

// Update makes a step of all parameters with gradients. Of a sparse one only rows change.
func (m *model) Update(d *ddp.DDP, at job.At) {
	m.adam.Step(at.Step+1, m.rate)
	if m.sparse {
		for _, param := range []int{usersParam, filmsParam} {
			rows, values := d.Rows(param)
			m.adam.StepRows(param, rows, values, at.Step+1, m.rate)
		}
	}
}
