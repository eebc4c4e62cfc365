package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/typemap"
)

// writeFunctions writes the C functions of a face. Each converts its arguments by the macros of
// face.h, IN_kind and OUT_kind, into an array of words, and calls gompi_call with its number.
// more are the further names written: forms for large counts, and other names of functions.
// Functions outside MPI 5.0 are left out of the standard face, unless they have a name of MPIX_.
func writeFunctions(w io.Writer, all []Function, protos map[string]prototype, standard bool) (
	more []string, err error) {
	fmt.Fprint(w, "#include \"short.h\"\n")
	number := -1
	for _, f := range all {
		if f.Face {
			continue
		}
		number++
		if standard && f.Beside && f.Other == "" {
			continue
		}
		p, ok := protos["MPI_"+f.Name]
		if !ok { // the header is older than the function
			p = f.Prototype(false)
		}
		if len(p.Params) != len(f.Args) {
			return nil, fmt.Errorf("MPI_%s has %d parameters: want %d", f.Name, len(p.Params), len(f.Args))
		}
		writeFunction(w, &f, p, number)
		c, ok := protos["MPI_"+f.Name+"_c"]
		if !ok && f.Large {
			c, ok = f.Prototype(true), true
		}
		if ok {
			if large, ok := largeForm(f, p, c); ok {
				writeFunction(w, &large, c, number)
				more = append(more, "MPI_"+large.Name)
			}
		}
		if f.Other != "" {
			fmt.Fprintf(w, "#pragma weak %s = PMPI_%s\n#pragma weak P%s = PMPI_%s\n", f.Other, f.Name, f.Other, f.Name)
			more = append(more, f.Other)
		}
	}
	return append(more, writeMissing(w, Missing(), protos)...), nil
}

// writeMissing writes the functions that gompi lacks and that have a communicator, whose error
// handler is called. The result is their names.
func writeMissing(w io.Writer, missing []Function, protos map[string]prototype) (names []string) {
	for _, f := range missing {
		p, ok := protos["MPI_"+f.Name]
		if by, _ := raiserOf(&f); by != "Comm" || !ok {
			continue
		}
		var params, unused []string
		for _, x := range p.Params {
			params, unused = append(params, x.String()), append(unused, "(void)"+x.Name)
		}
		fmt.Fprintf(w, "\n#pragma weak MPI_%s = PMPI_%s\n%s PMPI_%s(%s)\n{\n\t%s;\n",
			f.Name, f.Name, p.Result, f.Name, strings.Join(params, ", "), strings.Join(unused, ", "))
		fmt.Fprintf(w, "\treturn gompi_missing_on(\"MPI_%s\", %s);\n}\n", f.Name, raiserWord(&f, p))
		names = append(names, "MPI_"+f.Name)
	}
	return names
}

// largeForm returns the form of f for large counts, whose prototype is c. It exists only if c
// differs from p, the prototype of f, in nothing but wider integers: all integers cross as words.
func largeForm(f Function, p, c prototype) (Function, bool) {
	if len(c.Params) != len(p.Params) {
		return f, false
	}
	f.Name += "_c"
	f.Args = slices.Clone(f.Args)
	wider := strings.NewReplacer("MPI_Count", "int", "MPI_Aint", "int")
	for i, x := range c.Params {
		a, was := &f.Args[i], p.Params[i]
		if wider.Replace(x.Type) != wider.Replace(was.Type) || x.Array != was.Array ||
			a.Kind.Macro == "function" && x != was {
			return f, false
		}
		if a.Kind.Go == "array" && x.Type != was.Type && !strings.Contains(was.Type, "MPI_Aint") {
			a.Kind.Macro = "wide"
		}
	}
	return f, true
}

func writeFunction(w io.Writer, f *Function, p prototype, number int) {
	var before, words, after strings.Builder
	call := "gompi_call"
	if f.Early {
		call = "gompi_call_any_time"
		before.WriteString("\tgompi_start();\n")
	}
	for i, a := range f.Args {
		if a.Out && a.Kind.Name != "status" && a.Length == "" {
			fmt.Fprintf(&before, "\tif (!%s) return gompi_null(%d, %s, \"%s\");\n",
				p.Params[i].Name, number, raiserWord(f, p), p.Params[i].Name)
		}
	}
	for i, a := range f.Args {
		convert(&before, &words, &after, f, p, a, i)
	}
	var params []string
	for _, x := range p.Params {
		params = append(params, x.String())
	}
	list := strings.Join(params, ", ")
	var names []string
	for _, x := range p.Params {
		names = append(names, x.Name)
	}
	if list == "" {
		list = "void"
	}
	fmt.Fprintf(w, "\n#pragma weak MPI_%s = PMPI_%s\n%s PMPI_%s(%s)\n{\n", f.Name, f.Name, p.Result, f.Name, list)
	var counted, waits string
	if f.Counted {
		counted, waits = fmt.Sprintf("\tCOUNTED(\"MPI_%s\");\n", f.Name), "\tWAITS();\n"
	}
	fmt.Fprintf(w, "%s#ifdef SHORT_%s\n\tif (SHORT_%s(%s))\n\t\treturn MPI_SUCCESS;\n#endif\n%s%s",
		counted, f.Name, f.Name, strings.Join(names, ", "), waits, &before)
	if after.Len() == 0 {
		fmt.Fprintf(w, "\tgompi_word a[] = {%s};\n\treturn %s(%d, a);\n}\n", &words, call, number)
		return
	}
	fmt.Fprintf(w, "\tgompi_word a[] = {%s};\n\tint error = %s(%d, a);\n%s\treturn error;\n}\n",
		&words, call, number, &after)
}

// convert writes how argument i is converted before and after the call.
func convert(before, words, after *strings.Builder, f *Function, p prototype, a Arg, i int) {
	x := p.Params[i].Name
	switch {
	case a.Kind.Name == "status" && a.Length != "":
		n := length(f, p, a)
		fmt.Fprintf(before, "\tSTATUSES(st%d, %s, %s);\n", i, n, x)
		fmt.Fprintf(words, "(gompi_word)st%d, ", i)
		fmt.Fprintf(after, "\tSTATUSES_OUT(st%d, %s, %s);\n", i, n, x)
	case a.Kind.Name == "status":
		in := ""
		if a.In {
			in = "_IN"
		}
		fmt.Fprintf(before, "\tSTATUS%s(st%d, %s);\n", in, i, x)
		fmt.Fprintf(words, "STATUS_WORD(st%d, %s), ", i, x)
		if a.Out {
			fmt.Fprintf(after, "\tSTATUS_OUT(st%d, %s);\n", i, x)
		}
	case a.Length != "":
		n := length(f, p, a)
		get := "GOMPI_BAD"
		if a.In {
			get = fmt.Sprintf("IN_%s(%s[i])", a.Kind.Macro, x)
		}
		fmt.Fprintf(before, "\tIDS(ids%d, %s, %s);\n", i, n, get)
		fmt.Fprintf(words, "(gompi_word)ids%d, ", i)
		if a.Out {
			fmt.Fprintf(after, "\tIDS_OUT(%s, ids%d, %s);\n", a.Kind.Name, i, x)
		}
		fmt.Fprintf(after, "\tIDS_FREE(ids%d);\n", i)
	case a.In && a.Out:
		fmt.Fprintf(words, "IN_%s(*%s), ", a.Kind.Macro, x)
		if a.Kind.Registry != "" {
			fmt.Fprintf(after, "\tif (a[%d] != GOMPI_BAD) ", i)
		}
		fmt.Fprintf(after, "\tOUT_%s(%s, a[%d]);\n", a.Kind.Macro, x, i)
	case a.Out:
		fmt.Fprint(words, "0, ")
		isStatus := func(a Arg) bool { return a.Kind.Name == "status" }
		if slices.ContainsFunc(f.Args, isStatus) { // one of several requests may have failed
			fmt.Fprintf(after, "\tOUT_%s(%s, a[%d]);\n", a.Kind.Macro, x, i)
			break
		}
		fmt.Fprintf(after, "\tif (!error) OUT_%s(%s, a[%d]);\n", a.Kind.Macro, x, i)
		if a.Kind.Nulled {
			fmt.Fprintf(after, "\telse *(%s) = MPI_%s_NULL;\n", x, strings.ToUpper(a.Kind.Name))
		}
	default:
		fmt.Fprintf(words, "IN_%s(%s), ", a.Kind.Macro, x)
	}
}

// raiserWord returns the C expression for the object whose error handler f calls.
func raiserWord(f *Function, p prototype) string {
	if _, i := raiserOf(f); i >= 0 && !f.Args[i].Out {
		return "IN_" + f.Args[i].Kind.Macro + "(" + p.Params[i].Name + ")"
	}
	return "GOMPI_BAD"
}

// length returns the C expression for the length of an array.
func length(f *Function, p prototype, a Arg) string {
	if i := lengthOf(f, a); i >= 0 {
		return p.Params[i].Name
	}
	n := fmt.Sprintf("gompi_length(GOMPI_%s, comm)", strings.ToUpper(a.Length))
	if a.Name == "sendtypes" { // which are not looked at in place
		n = "sendbuf == MPI_IN_PLACE ? 0 : " + n
	}
	return n
}

// writePredefined writes the predefined handles with their numbers, as far as the header has them.
// fortran has the numbers of Fortran's, where they are others.
func writePredefined(w io.Writer, fortran map[string]int) {
	fmt.Fprint(w, "\nconst struct gompi_predefined gompi_predefined[] = {\n")
	row := func(kind, name string, id int) {
		number, ok := fortran[name]
		if !ok {
			number = -1
		}
		fmt.Fprintf(w, "#ifdef %s\n\t{KIND_%s, %d, %d, (gompi_handle)(intptr_t)%s},\n#endif\n",
			name, kind, id, number, name)
	}
	// MPI_DATATYPE_NULL comes first: datatypes that a header's MPI lacks share its handle.
	row("datatype", "MPI_DATATYPE_NULL", abi.DatatypeNull)
	byID := func(a, b *typemap.Type) int { return a.Basic().ID - b.Basic().ID }
	for _, t := range slices.SortedFunc(typemap.All(), byID) {
		row("datatype", t.Basic().Name, t.Basic().ID)
	}
	for _, h := range abi.Handles() {
		row(h.Kind, h.Name, h.ID)
	}
	fmt.Fprint(w, "\t{0},\n};\n")
}
