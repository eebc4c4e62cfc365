package typemap

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func one2(v int) []int { return []int{v, v} }

// The constructors, what MPI_Type_get_contents has to give back, in the order of the standard's
// table for it, and size and bounds.
func TestContentsAndBounds(t *testing.T) {
	integer, char, double := Named("MPI_INT"), Named("MPI_CHAR"), Named("MPI_DOUBLE")
	wide := must(Resized(integer, 0, 8))
	for _, c := range []struct {
		what                string
		of                  *Type
		contents            Contents
		size, lb, extent    int
		trueLb, trueExtent  int
		contiguous, uniform bool
	}{
		{"named", integer, Contents{Combiner: 101}, 4, 0, 4, 0, 4, true, true},
		{"dup", must(Dup(wide)), Contents{102, nil, nil, []*Type{wide}}, 4, 0, 8, 0, 4, true, true},
		{"dup of named", must(Dup(double)), Contents{102, nil, nil, []*Type{double}}, 8, 0, 8, 0, 8, true, true},
		{"contiguous", must(Contiguous(3, wide)), Contents{103, []int{3}, nil, []*Type{wide}}, 12, 0, 24, 0, 20,
			false, true},
		{"vector", must(Vector(2, 3, 4, integer)), Contents{104, []int{2, 3, 4}, nil, []*Type{integer}}, 24, 0, 28, 0,
			28, false, true},
		{"hvector", must(Hvector(2, 1, -10, integer)), Contents{105, []int{2, 1}, []int{-10}, []*Type{integer}}, 8, -10,
			16, -10, 14, false, true},
		{"indexed", must(Indexed([]int{3, 1}, []int{4, 0}, integer)),
			Contents{106, []int{2, 3, 1, 4, 0}, nil, []*Type{integer}}, 16, 0, 28, 0, 28, false, true},
		{"hindexed", must(Hindexed([]int{1, 2}, []int{-4, 0}, integer)),
			Contents{107, []int{2, 1, 2}, []int{-4, 0}, []*Type{integer}}, 12, -4, 12, -4, 12, true, true},
		{"indexed_block", must(IndexedBlock(2, []int{5, 1}, char)),
			Contents{108, []int{2, 2, 5, 1}, nil, []*Type{char}}, 4, 1, 6, 1, 6, false, true},
		{"hindexed_block", must(HindexedBlock(2, []int{5, 1}, char)),
			Contents{109, []int{2, 2}, []int{5, 1}, []*Type{char}}, 4, 1, 6, 1, 6, false, true},
		{"struct", must(Struct([]int{1, 2}, []int{0, 8}, []*Type{double, char})),
			Contents{110, []int{2, 1, 2}, []int{0, 8}, []*Type{double, char}}, 10, 0, 16, 0, 10, true, false},
		{"subarray", must(Subarray([]int{4, 5}, []int{2, 3}, []int{1, 2}, OrderFortran, char)),
			Contents{111, []int{2, 4, 5, 2, 3, 1, 2, 15}, nil, []*Type{char}}, 6, 0, 20, 9, 10, false, true},
		{"darray", must(Darray(2, 1, []int{3, 4}, []int{17, 16}, one2(19), []int{2, 1}, OrderC, char)),
			Contents{112, []int{2, 1, 2, 3, 4, 17, 16, 19, 19, 2, 1, 12}, nil, []*Type{char}}, 4, 0, 12, 8, 4,
			true, true},
		{"real", must(F90Real(6, Undefined)), Contents{113, []int{6, Undefined}, nil, nil}, 4, 0, 4, 0, 4, true, true},
		{"complex", must(F90Complex(Undefined, 200)), Contents{114, []int{Undefined, 200}, nil, nil}, 16, 0, 16, 0, 16,
			true, true},
		{"integer", must(F90Integer(5)), Contents{115, []int{5}, nil, nil}, 4, 0, 4, 0, 4, true, true},
		{"lower marker above the data", must(Struct([]int{1, 1}, []int{21, 0}, []*Type{Named("MPI_LB"), integer})),
			Contents{110, []int{2, 1, 1}, []int{21, 0}, []*Type{Named("MPI_LB"), integer}}, 4, 21, -16, 0, 4,
			true, true},
		{"darray with a block beyond the array",
			must(Darray(2, 0, []int{3}, []int{17}, []int{math.MaxInt}, []int{2}, OrderC, char)),
			Contents{112, []int{2, 0, 1, 3, 17, math.MaxInt, 2, 12}, nil, []*Type{char}}, 3, 0, 3, 0, 3, true, true},
		{"darray behind it", must(Darray(2, 1, []int{3}, []int{17}, []int{math.MaxInt}, []int{2}, OrderC, char)),
			Contents{112, []int{2, 1, 1, 3, 17, math.MaxInt, 2, 12}, nil, []*Type{char}}, 0, 0, 3, 0, 0, true, false},
		{"resized", must(Resized(double, -3, 5)), Contents{116, nil, []int{-3, 5}, []*Type{double}}, 8, -3, 5, 0, 8,
			true, true},
	} {
		got := c.of.Contents()
		if got.Combiner != c.contents.Combiner || !slices.Equal(got.Ints, c.contents.Ints) ||
			!slices.Equal(got.Addrs, c.contents.Addrs) || !slices.Equal(got.Types, c.contents.Types) {
			t.Errorf("%s: contents %+v, want %+v", c.what, got, c.contents)
		}
		lb, extent := c.of.TrueExtent()
		if c.of.Size() != c.size || c.of.Lb() != c.lb || c.of.Extent() != c.extent || c.of.Ub() != c.lb+c.extent ||
			lb != c.trueLb || extent != c.trueExtent {
			t.Errorf("%s: size %d, lb %d, extent %d, true lb %d, true extent %d: want %d, %d, %d, %d, %d",
				c.what, c.of.Size(), c.of.Lb(), c.of.Extent(), lb, extent, c.size, c.lb, c.extent, c.trueLb,
				c.trueExtent)
		}
		if off, ok := c.of.Contiguous(1); ok != c.contiguous || ok && off != c.trueLb {
			t.Errorf("%s: one element is contiguous at %d: %v, want %v", c.what, off, ok, c.contiguous)
		}
		if (c.of.Uniform() != nil) != c.uniform {
			t.Errorf("%s: uniform %v, want %v", c.what, c.of.Uniform(), c.uniform)
		}
		predefined := c.contents.Combiner == 101 || len(c.contents.Addrs)+len(c.contents.Types) == 0
		if (c.of.Basic() != nil) != predefined {
			t.Errorf("%s: predefined %v, want %v", c.what, c.of.Basic(), predefined)
		}
	}
}

// The examples of section 5.1 of MPI 4.1 (4.1 of MPI 3.1): type maps that the standard prints.
func TestExamplesOfTheStandard(t *testing.T) {
	double, char, float := Named("MPI_DOUBLE"), Named("MPI_CHAR"), Named("MPI_FLOAT")
	pair := must(Struct([]int{1, 1}, []int{0, 8}, []*Type{double, char}))
	eight := func(disps ...int) (all []int) { // of a double and a char at each
		for _, d := range disps {
			for k := range 9 {
				all = append(all, d+k)
			}
		}
		return all
	}
	run := func(at, n int) (all []int) {
		for k := range n {
			all = append(all, at+k)
		}
		return all
	}
	for _, c := range []struct {
		what string
		of   *Type
		want []int
	}{
		{"contiguous 3", must(Contiguous(3, pair)), eight(0, 16, 32)},
		{"vector 2, 3, 4", must(Vector(2, 3, 4, pair)), eight(0, 16, 32, 64, 80, 96)},
		{"vector 3, 1, -2", must(Vector(3, 1, -2, pair)), eight(0, -32, -64)},
		{"indexed (3, 1) at (4, 0)", must(Indexed([]int{3, 1}, []int{4, 0}, pair)), eight(64, 80, 96, 0)},
		{"struct (2, 1, 3) at (0, 16, 26)", must(Struct([]int{2, 1, 3}, []int{0, 16, 26}, []*Type{float, pair, char})),
			slices.Concat(run(0, 8), eight(16), run(26, 3))},
	} {
		transfers(t, c.of, 1, c.want)
	}
	if pair.Extent() != 16 {
		t.Errorf("the extent of {(double, 0), (char, 8)} is %d, want 16", pair.Extent())
	}
	marked := must(Struct([]int{1, 1, 1}, []int{-3, 0, 6}, []*Type{Named("MPI_LB"), Named("MPI_INT"), Named("MPI_UB")}))
	two := must(Contiguous(2, marked))
	if marked.Lb() != -3 || marked.Extent() != 9 || two.Lb() != -3 || two.Extent() != 18 {
		t.Errorf("{(lb, -3), (int, 0), (ub, 6)} has lb %d and extent %d, two of it %d and %d: want -3 and 9, -3 and 18",
			marked.Lb(), marked.Extent(), two.Lb(), two.Extent())
	}
	transfers(t, two, 1, slices.Concat(run(0, 4), run(9, 4)))
}

// The part of an array of three dimensions, in both orders, by three loops.
func TestSubarrayOfThreeDimensions(t *testing.T) {
	sizes, subsizes, starts := []int{4, 5, 6}, []int{2, 3, 4}, []int{1, 2, 1}
	var c, fortran []int
	for i := range subsizes[0] {
		for j := range subsizes[1] {
			for k := range subsizes[2] {
				c = append(c, ((starts[0]+i)*5+starts[1]+j)*6+starts[2]+k)
			}
		}
	}
	for k := range subsizes[2] {
		for j := range subsizes[1] {
			for i := range subsizes[0] {
				fortran = append(fortran, starts[0]+i+4*(starts[1]+j+5*(starts[2]+k)))
			}
		}
	}
	transfers(t, must(Subarray(sizes, subsizes, starts, OrderC, Named("MPI_BYTE"))), 1, c)
	transfers(t, must(Subarray(sizes, subsizes, starts, OrderFortran, Named("MPI_BYTE"))), 1, fortran)
}

// What all ranks have of a distributed array is the array, each element once.
func TestDarraysOfAllRanksAreTheArray(t *testing.T) {
	for _, kinds := range [][]int{{17, 18, 16}, {18, 18, 17}, {16, 17, 18}} {
		for _, order := range []int{OrderC, OrderFortran} {
			sizes, args, procs := []int{7, 9, 5}, []int{19, 2, 19}, []int{3, 2, 2}
			ranks := 1
			for i, k := range kinds {
				if k == DistributeNone {
					procs[i] = 1
				} else if k == DistributeBlock {
					args[i] = DistributeDefault
				}
				ranks *= procs[i]
			}
			seen := make([]int, 7*9*5)
			for rank := range ranks {
				of := must(Darray(ranks, rank, sizes, kinds, args, procs, order, Named("MPI_BYTE")))
				for _, at := range places(typeMap(of), 1) {
					seen[at]++
				}
				agrees(t, of, 1)
			}
			if slices.Min(seen) != 1 || slices.Max(seen) != 1 {
				t.Errorf("%v in order %d: elements belong to %v ranks, want one each", kinds, order, seen)
			}
		}
	}
}

func TestWrongArguments(t *testing.T) {
	integer := Named("MPI_INT")
	huge := must(Contiguous(1<<58, integer))
	for _, c := range []struct {
		make  func() (*Type, error)
		class ErrorClass
		want  string
	}{
		{func() (*Type, error) { return Contiguous(-1, integer) }, ErrCount, "count is -1: want 0 or more"},
		{func() (*Type, error) { return Contiguous(1, nil) }, ErrType,
			"datatype is MPI_DATATYPE_NULL: want a datatype"},
		{func() (*Type, error) { return Contiguous(100, huge) }, ErrCount, "2^61 bytes"},
		{func() (*Type, error) { return Vector(-1, 1, 1, integer) }, ErrCount, "count is -1"},
		{func() (*Type, error) { return Vector(1, -2, 1, integer) }, ErrArg, "blocklength is -2"},
		{func() (*Type, error) { return Vector(1, 1, 1, nil) }, ErrType, "MPI_DATATYPE_NULL"},
		{func() (*Type, error) { return Vector(2, 1, math.MaxInt, integer) }, ErrArg,
			"stride is 9223372036854775807 elements"},
		{func() (*Type, error) { return Hvector(2, 1, math.MinInt, integer) }, ErrCount, "2^61 bytes"},
		{func() (*Type, error) { return Hvector(2, -1, 1, integer) }, ErrArg, "blocklength is -1"},
		{func() (*Type, error) { return Indexed([]int{1, -1}, []int{0, 0}, integer) }, ErrArg,
			"array_of_blocklengths[1] is -1"},
		{func() (*Type, error) { return Indexed([]int{1, 1}, []int{0, math.MaxInt}, integer) }, ErrArg,
			"array_of_displacements[1] is"},
		{func() (*Type, error) { return Hindexed([]int{-1}, []int{0}, integer) }, ErrArg,
			"array_of_blocklengths[0] is -1"},
		{func() (*Type, error) { return Hindexed([]int{1}, []int{0}, nil) }, ErrType, "MPI_DATATYPE_NULL"},
		{func() (*Type, error) { return IndexedBlock(-1, []int{0}, integer) }, ErrArg, "blocklength is -1"},
		{func() (*Type, error) { return HindexedBlock(-1, []int{0}, integer) }, ErrArg, "blocklength is -1"},
		{func() (*Type, error) { return Struct([]int{-1}, []int{0}, []*Type{integer}) }, ErrArg,
			"array_of_blocklengths[0] is -1"},
		{func() (*Type, error) { return Struct([]int{1, 1}, one2(0), []*Type{integer, nil}) }, ErrType,
			"array_of_types[1] is MPI_DATATYPE_NULL"},
		{func() (*Type, error) {
			return Struct([]int{1, 1}, one2(0), []*Type{huge, must(Contiguous(1<<58, Named("MPI_DOUBLE")))})
		}, ErrCount, "2^61 bytes"},
		{func() (*Type, error) { return Resized(nil, 0, 1) }, ErrType, "MPI_DATATYPE_NULL"},
		{func() (*Type, error) { return Resized(integer, math.MinInt, 1) }, ErrArg, "lb is -9223372036854775808"},
		{func() (*Type, error) { return Dup(nil) }, ErrType, "MPI_DATATYPE_NULL"},
		{func() (*Type, error) { return Subarray(nil, nil, nil, OrderC, integer) }, ErrDims,
			"ndims is 0: want 1 or more"},
		{func() (*Type, error) { return Subarray(one2(4), one2(2), one2(1), 3, integer) }, ErrArg, "order is 3"},
		{func() (*Type, error) { return Subarray(one2(4), one2(2), one2(1), OrderC, nil) }, ErrType,
			"MPI_DATATYPE_NULL"},
		{func() (*Type, error) { return Subarray([]int{4, 0}, one2(1), one2(0), OrderC, integer) }, ErrArg,
			"array_of_sizes[1] is 0"},
		{func() (*Type, error) { return Subarray(one2(4), []int{2, 5}, one2(0), OrderC, integer) }, ErrArg,
			"array_of_subsizes[1] is 5: want 1 to 4"},
		{func() (*Type, error) { return Subarray(one2(4), one2(2), []int{3, 0}, OrderC, integer) }, ErrArg,
			"array_of_starts[0] is 3: want 0 to 2"},
		{func() (*Type, error) { return Subarray(one2(1<<31), one2(1), one2(0), OrderC, integer) }, ErrArg,
			"the array has more than 2^61 bytes"},
		{func() (*Type, error) { return Darray(4, 0, nil, nil, nil, nil, OrderC, integer) }, ErrDims, "ndims is 0"},
		{func() (*Type, error) { return Darray(4, 0, one2(4), one2(17), one2(19), one2(2), 1, integer) }, ErrArg,
			"order is 1"},
		{func() (*Type, error) { return Darray(4, 4, one2(4), one2(17), one2(19), one2(2), OrderC, integer) }, ErrArg,
			"rank is 4: want 0 to 3"},
		{func() (*Type, error) { return Darray(5, 0, one2(4), one2(17), one2(19), one2(2), OrderC, integer) }, ErrArg,
			"size is 5: want the product of array_of_psizes [2 2]"},
		{func() (*Type, error) { return Darray(4, 0, one2(4), one2(17), one2(19), []int{4, 0}, OrderC, integer) },
			ErrArg, "array_of_psizes[1] is 0"},
		{func() (*Type, error) { return Darray(4, 0, []int{0, 4}, one2(17), one2(19), one2(2), OrderC, integer) },
			ErrArg, "array_of_gsizes[0] is 0"},
		{func() (*Type, error) { return Darray(4, 0, one2(4), one2(17), []int{19, 1}, one2(2), OrderC, integer) },
			ErrArg, "array_of_dargs[1] is 1: want 2 or more"},
		{func() (*Type, error) { return Darray(4, 0, one2(4), one2(18), []int{19, 0}, one2(2), OrderC, integer) },
			ErrArg, "array_of_dargs[1] is 0"},
		{func() (*Type, error) { return Darray(4, 0, one2(4), one2(16), one2(19), one2(2), OrderC, integer) }, ErrArg,
			"array_of_psizes[0] is 2: want 1"},
		{func() (*Type, error) { return Darray(4, 0, one2(4), one2(20), one2(19), one2(2), OrderC, integer) }, ErrArg,
			"array_of_distribs[0] is 20"},
		{func() (*Type, error) { return F90Integer(39) }, ErrArg, "r is 39"},
		{func() (*Type, error) { return F90Real(34, 1) }, ErrArg, "p is 34"},
		{func() (*Type, error) { return F90Real(1, 4932) }, ErrArg, "r is 4932"},
		{func() (*Type, error) { return F90Complex(Undefined, Undefined) }, ErrArg, "both MPI_UNDEFINED"},
		{func() (*Type, error) { return MatchSize(ClassReal, 3) }, ErrArg, "size is 3"},
		{func() (*Type, error) { return MatchSize(7, 4) }, ErrArg, "typeclass is 7"},
	} {
		of, err := c.make()
		var e *Error
		if of != nil || !errors.As(err, &e) || e.Class != c.class || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %v: want an error of class %d with %q", of, err, c.class, c.want)
		}
	}
}

func TestFortransTypesByPrecision(t *testing.T) {
	for _, c := range []struct {
		of   *Type
		want string
	}{
		{must(F90Integer(2)), "MPI_INTEGER1"}, {must(F90Integer(3)), "MPI_INTEGER2"},
		{must(F90Integer(9)), "MPI_INTEGER4"},
		{must(F90Integer(10)), "MPI_INTEGER8"}, {must(F90Integer(38)), "MPI_INTEGER16"},
		{must(F90Real(6, 37)), "MPI_REAL4"}, {must(F90Real(6, 38)), "MPI_REAL8"},
		{must(F90Real(7, Undefined)), "MPI_REAL8"},
		{must(F90Real(19, 4000)), "MPI_REAL16"}, {must(F90Complex(15, 307)), "MPI_COMPLEX16"},
		{must(F90Complex(33, 1)), "MPI_COMPLEX32"},
		{must(MatchSize(ClassInteger, 2)), "MPI_INTEGER2"}, {must(MatchSize(ClassInteger, 16)), "MPI_INTEGER16"},
		{must(MatchSize(ClassReal, 4)), "MPI_REAL4"}, {must(MatchSize(ClassReal, 16)), "MPI_REAL16"},
		{must(MatchSize(ClassComplex, 8)), "MPI_COMPLEX8"}, {must(MatchSize(ClassComplex, 32)), "MPI_COMPLEX32"},
	} {
		if c.of.Basic() != Named(c.want).Basic() {
			t.Errorf("%s, want %s", c.of.Basic().Name, c.want)
		}
	}
	if one, again := must(F90Real(6, 30)), must(F90Real(6, 30)); one != again ||
		must(F90Real(6, 30)) == must(F90Real(6, 31)) || must(F90Real(6, 30)) == must(F90Complex(6, 30)) {
		t.Error("types of the same precision are not one, or those of different ones are")
	}
	if must(MatchSize(ClassReal, 8)) != Named("MPI_REAL8") {
		t.Error("MatchSize makes a type, want one with a name")
	}
}

func TestTypesKeepWhatTheyWereMadeWith(t *testing.T) {
	lengths, displacements, types := []int{1, 2}, []int{0, 8}, []*Type{Named("MPI_INT"), Named("MPI_CHAR")}
	all := []*Type{
		must(Struct(lengths, displacements, types)), must(Hindexed(lengths, displacements, types[0])),
		must(Indexed(lengths, displacements, types[0])),
		must(HindexedBlock(1, displacements, types[0])), must(IndexedBlock(1, displacements, types[0])),
	}
	var before []Contents
	for _, of := range all {
		c := of.Contents()
		before = append(before, Contents{c.Combiner, slices.Clone(c.Ints), slices.Clone(c.Addrs),
			slices.Clone(c.Types)})
	}
	lengths[0], displacements[1], types[0] = 9, 99, nil
	for i, of := range all {
		if c := of.Contents(); !reflect.DeepEqual(c, before[i]) {
			t.Errorf("contents changed from %v to %v", before[i], c)
		}
		agrees(t, of, 1)
	}
}

// Types of regular structure need no more memory than their description, whatever their counts.
func TestRegularTypesAreSmall(t *testing.T) {
	integer := Named("MPI_INT")
	index := make([]int, 1000)
	for i := range index {
		index[i] = 3 * i
	}
	column := must(Vector(1<<40, 1, 2, integer))
	for _, c := range []struct {
		what string
		of   *Type
		deep int
	}{
		{"vector", column, 1},
		{"vector of vectors", must(Hvector(1<<10, 1, 4, column)), 2},
		{"vector without gaps between blocks of a vector",
			must(Contiguous(1000, must(Resized(must(Vector(5, 1, 2, integer)), 0, 40)))), 1},
		{"subarray", must(Subarray([]int{1000, 1000, 1000}, []int{10, 1000, 500}, []int{3, 0, 7}, OrderC, integer)), 1},
		{"regular indices", must(IndexedBlock(1, index, integer)), 1},
		{"regular indices of vectors", must(IndexedBlock(1, index, must(Vector(2, 1, 2, integer)))), 2},
		{"struct of the same", must(Struct(one2(1), []int{0, 8}, []*Type{integer, integer})), 1},
	} {
		if loops, listed := c.of.layout().Complexity(); loops != c.deep || listed != 0 {
			t.Errorf("%s: %d loops and %d parts that are listed, want %d and none", c.what, loops, listed, c.deep)
		}
	}
	whole := must(Vector(1<<30, 2, 2, must(Struct(one2(1), []int{0, 4}, []*Type{integer, integer}))))
	if off, ok := whole.Contiguous(1 << 20); !ok || off != 0 {
		t.Error("a vector without gaps is not contiguous")
	}
}

// Displacements that are addresses, from MPI_BOTTOM.
func TestAbsoluteAddresses(t *testing.T) {
	a, b := []byte{1, 2, 3, 4}, []byte("abcdefgh")
	of := must(Struct([]int{1, 2}, []int{int(address(b)), int(address(a))},
		[]*Type{Named("MPI_DOUBLE"), Named("MPI_SHORT")}))
	got := make([]byte, 12)
	if n := of.Pack(got, 0, 1); n != 12 || string(got) != "abcdefgh\x01\x02\x03\x04" {
		t.Errorf("packed %d bytes %q", n, got)
	}
	if n := of.UnpackAt(0, 1, []byte("HIJ"), 7); n != 3 || string(b) != "abcdefgH" ||
		!bytes.Equal(a, []byte("IJ\x03\x04")) {
		t.Errorf("unpacked %d bytes, to %q and %q", n, b, a)
	}
	double := must(Hindexed([]int{1}, []int{int(address(b))}, Named("MPI_DOUBLE")))
	if off, ok := double.Contiguous(1); !ok || off != int(address(b)) {
		t.Errorf("one element at an address is contiguous at %d: %v", off, ok)
	}
}

func TestSignatures(t *testing.T) {
	integer, double, pair := Named("MPI_INT"), Named("MPI_DOUBLE"), Named("MPI_DOUBLE_INT")
	both := must(Struct(one2(1), []int{40, 0}, []*Type{double, integer}))
	turned := must(Struct(one2(1), []int{0, 8}, []*Type{integer, double}))
	for _, c := range []struct {
		what     string
		a, b     *Type
		n, m     int
		areEqual bool
	}{
		{"12 integers", integer, must(Vector(3, 2, 5, integer)), 12, 2, true},
		{"11 integers and 12", integer, integer, 11, 12, false},
		{"pairs and structs", pair, both, 7, 7, true},
		{"another order", both, turned, 3, 3, false},
		{"two pairs in one", must(Contiguous(2, pair)), both, 5, 10, true},
		{"float and int", Named("MPI_FLOAT"), integer, 1, 1, false},
		{"complex and two doubles", Named("MPI_C_DOUBLE_COMPLEX"), double, 1, 2, false},
		{"C and Fortran", integer, Named("MPI_INTEGER"), 3, 3, true},
		{"bytes and characters", Named("MPI_BYTE"), Named("MPI_CHAR"), 8, 8, true},
		{"nothing", integer, must(Contiguous(0, double)), 0, 5, true},
		{"empty parts", must(Struct(one2(1), one2(0), []*Type{must(Contiguous(0, double)), integer})), integer,
			4, 4, true},
		{"empty parts between", must(Struct([]int{1, 1, 1}, []int{0, 0, 4},
			[]*Type{integer, must(Contiguous(0, double)), integer})), integer, 4, 8, true},
	} {
		if (c.a.Signature(c.n) == c.b.Signature(c.m)) != c.areEqual {
			t.Errorf("%s: equal %v, want %v", c.what, !c.areEqual, c.areEqual)
		}
	}
}

// Parts of a type that differ in one thing alone are not taken for turns of a loop.
func TestPartsThatLookAlike(t *testing.T) {
	integer, float := Named("MPI_INT"), Named("MPI_FLOAT")
	vector := func(count, length, stride int, of *Type) *Type { return must(Vector(count, length, stride, of)) }
	lone := must(Indexed([]int{1, 2}, []int{0, 3}, integer))
	other := must(Indexed([]int{1, 2}, []int{0, 4}, integer))
	for _, pair := range [][]*Type{
		{vector(2, 1, 2, integer), vector(2, 1, 3, integer)},
		{vector(2, 1, 2, integer), vector(3, 1, 2, integer)},
		{vector(2, 1, 3, integer), vector(2, 2, 3, integer)},
		{vector(2, 1, 2, integer), vector(2, 1, 2, float)},
		{lone, other},
		{must(Hvector(2, 1, 80, vector(3, 1, 2, integer))), must(Hvector(2, 1, 80, vector(3, 1, 3, integer)))},
		{must(Struct(one2(1), one2(0), []*Type{lone, vector(2, 1, 2, float)})),
			must(Struct(one2(1), one2(0), []*Type{lone, vector(2, 1, 3, float)}))},
	} {
		for _, types := range [][]*Type{pair, {pair[0], pair[0], pair[1]}, {pair[0], pair[0]}} {
			displacements, lengths := make([]int, len(types)), make([]int, len(types))
			for i := range types {
				displacements[i], lengths[i] = 200*i, 1
			}
			agrees(t, must(Struct(lengths, displacements, types)), 2)
		}
	}
}
