package ways

import (
	"math/rand/v2"
	"testing"
)

// A machine has the costs of plain, non-temporal and string copies in one of its states, in and out
// of a ring, ns a KiB.
type machine struct {
	name   string
	states [][3]int64
}

// machines were measured by a bare ring of two processes, records of 64 KiB.
var machines = []machine{
	{"EPYC 25/17", [][3]int64{{72, 143, 75}, {92, 150, 98}, {540, 230, 480}}},
	{"EPYC 25/1", [][3]int64{{113, 201, 1100}, {374, 238, 1100}}},
	{"EPYC 26/2", [][3]int64{{50, 94, 37}, {137, 97, 94}}},
	{"Xeon 6/207", [][3]int64{{172, 234, 180}}},
	{"without other instructions", [][3]int64{{100, 100, 100}, {300, 300, 300}}},
}

// noisy returns a cost as a shared machine shows it.
func noisy(r *rand.Rand, cost int64) int64 {
	if r.IntN(50) == 0 {
		return cost * 30 // interrupted
	}
	return cost * (100 + int64(r.IntN(15))) / 100
}

func TestTheCheapestWayIsTaken(t *testing.T) {
	pace := Pace{Ways: 3, First: 8, Every: 8}
	const uses, stay = 400_000, 20_000
	for _, m := range machines {
		r := rand.New(rand.NewPCG(1, uint64(len(m.name))))
		c := New(pace)
		var total, best, other, hopelessUses int64
		for i := range uses {
			costs := m.states[i/stay%len(m.states)]
			way, timed := c.Next()
			if way != c.Present() {
				other++
			}
			least := min(costs[0], costs[1], costs[2])
			if costs[way] >= hopeless*least {
				hopelessUses++
			}
			best += least
			total += costs[way]
			if timed {
				c.Note(noisy(r, costs[way]))
			}
		}
		flips := int64(uses / stay)
		t.Logf("%s: %.3f of the least cost, %.2f %% of uses in trials", m.name, float64(total)/float64(best),
			100*float64(other)/uses)
		if total*100 > best*105 {
			t.Errorf("%s: the cost is %d, want at most 1.05 of %d", m.name, total, best)
		}
		if other*100 > 2*uses {
			t.Errorf("%s: %d of %d uses took another way, want 2 %% at most", m.name, other, uses)
		}
		if hopelessUses > 2*flips+2 {
			t.Errorf("%s: %d uses of a way that costs ten times as much, want one for each change", m.name, hopelessUses)
		}
	}
}

// Costs that rise are noticed after a few timed uses, however long the choice has held.
func TestRisingCostsBeginATrialAtOnce(t *testing.T) {
	pace := Pace{Ways: 2, First: 8, Every: 8}
	c := New(pace)
	costs := [2]int64{100, 200}
	use := func() int {
		way, timed := c.Next()
		if timed {
			c.Note(costs[way])
		}
		return way
	}
	for range 100_000 {
		use()
	}
	costs[0] = 400
	for n := 0; use() != 1 || c.Present() != 1; n++ {
		if n > 4*int(pace.Every) {
			t.Fatalf("after %d uses the way is still %d", n, c.Present())
		}
	}
}

// One slow use in a row decides nothing, and an unanswered one does not count.
func TestDisturbancesDecideNothing(t *testing.T) {
	pace := Pace{Ways: 2, First: 8, Every: 4}
	c := New(pace)
	for i := range 10_000 {
		way, timed := c.Next()
		switch {
		case !timed:
		case c.trying >= 0 && c.sampled == 0, c.trying < 0 && i%2 == 0 && c.rises == 0:
			c.Note(100_000)
		case i%7 == 0:
			c.Lost()
		default:
			c.Note(100 + int64(way))
		}
		if c.Present() != 0 {
			t.Fatal("the other way was taken, which is not cheaper")
		}
	}
}

// Another way is warm before it is timed, and equal notes give equal choices.
func TestTrialsWarmCaches(t *testing.T) {
	pace := Pace{Ways: 3, First: 5, Every: 16, Warm: 4}
	a, b := New(pace), New(pace)
	warmed := 0
	for i := range 5000 {
		way, timed := a.Next()
		if w, tm := b.Next(); w != way || tm != timed {
			t.Fatalf("use %d: ways %d and %d after equal notes", i, way, w)
		}
		switch {
		case way == a.Present():
			warmed = 0
		case !timed:
			warmed++
		case warmed < int(pace.Warm):
			t.Fatalf("use %d: way %d is timed after %d uses, want %d", i, way, warmed, pace.Warm)
		}
		if timed {
			a.Note(int64(100 - way))
			b.Note(int64(100 - way))
		}
	}
}

// A disturbance of some uses in a row, as new memory is, decides nothing: the present way is warm
// before it is timed, too.
func TestADisturbanceOfSomeUsesDecidesNothing(t *testing.T) {
	c := New(Pace{Ways: 2, First: 4, Every: 16, Warm: 8})
	disturbed, begun := 0, 0
	for i := range 5000 {
		way, timed := c.Next()
		cost := int64(100 + 20*way)
		if timed && i/500 > begun && c.trying < 0 {
			begun, disturbed = i/500, 5
		}
		if disturbed--; disturbed >= 0 {
			cost = 5000
		}
		if timed {
			c.Note(cost)
		}
		if c.Present() != 0 {
			t.Fatalf("use %d: the other way was taken, which is not cheaper", i)
		}
	}
	if begun < 9 {
		t.Errorf("%d disturbances, want 9", begun)
	}
}
