package table

import "strings"

// A Prototype is how a function is declared in C.
type Prototype struct {
	Result string
	Params []Param
}

// A Param is a parameter: "const int", "ranks", "[]".
type Param struct{ Type, Name, Array string }

// String returns the parameter as written in C.
func (p Param) String() string {
	if strings.HasSuffix(p.Type, "*") || p.Name == "" {
		return p.Type + p.Name + p.Array
	}
	return p.Type + " " + p.Name + p.Array
}

// A ctype is the C type of a kind of arguments, and its type in a form for large counts if
// different. Arrays and addresses are const unless the function stores there.
type ctype struct{ narrow, large, array string }

var ctypes = map[string]ctype{
	"int":       {narrow: "int"},
	"const":     {narrow: "const int"},
	"double":    {narrow: "double"},
	"count":     {narrow: "int", large: "MPI_Count"},
	"unit":      {narrow: "int", large: "MPI_Aint"},
	"aint":      {narrow: "MPI_Aint"},
	"extent":    {narrow: "MPI_Aint", large: "MPI_Count"},
	"big":       {narrow: "MPI_Count"},
	"offset":    {narrow: "MPI_Offset"},
	"disp":      {narrow: "MPI_Offset"},
	"argc":      {narrow: "int *"},
	"argv":      {narrow: "char ***"},
	"address":   {narrow: "void *"},
	"buffer":    {narrow: "void *"},
	"place":     {narrow: "void *"},
	"text":      {narrow: "char *"},
	"texts":     {narrow: "char *", array: "[]"},
	"textss":    {narrow: "char **", array: "[]"},
	"array":     {narrow: "int", array: "[]"},
	"weights":   {narrow: "int *"}, // as an array, compilers would warn of MPI_UNWEIGHTED
	"counts":    {narrow: "int", large: "MPI_Count", array: "[]"},
	"displs":    {narrow: "int", large: "MPI_Aint", array: "[]"},
	"extents":   {narrow: "MPI_Aint", large: "MPI_Count", array: "[]"},
	"addresses": {narrow: "MPI_Aint", array: "[]"},
	"bigs":      {narrow: "MPI_Count", array: "[]"},
	"ranges":    {narrow: "int", array: "[][3]"},
	"...":       {narrow: "..."},
}

// functionTypes are the types of the program's functions, by the argument's name; * is for the
// object that the function of MPI has in its name.
var functionTypes = map[string]string{
	"copy_fn": "*_copy_attr_function", "delete_fn": "*_delete_attr_function", "handler_fn": "*_errhandler_function",
	"user_fn": "User_function", "query_fn": "Grequest_query_function", "free_fn": "Grequest_free_function",
	"cancel_fn": "Grequest_cancel_function", "read_fn": "Datarep_conversion_function",
	"write_fn": "Datarep_conversion_function", "extent_fn": "Datarep_extent_function",
}

// ctypeOf returns the C type of an argument's kind, for a function.
func (f *Function) ctypeOf(a Arg) ctype {
	if t, ok := ctypes[a.Kind]; ok {
		return t
	}
	name := a.Kind
	if a.Kind == "function" {
		object, _, _ := strings.Cut(f.Name, "_")
		if name = strings.Replace(functionTypes[a.Name], "*", object, 1); object == "Keyval" {
			name = map[string]string{"copy_fn": "Copy_function", "delete_fn": "Delete_function"}[a.Name]
		}
	}
	switch {
	case name == "User_function" || name == "Datarep_conversion_function":
		return ctype{narrow: "MPI_" + name + " *", large: "MPI_" + name + "_c *"}
	case strings.HasSuffix(name, "_function"):
		return ctype{narrow: "MPI_" + name + " *"}
	case strings.HasPrefix(name, "T_"):
		return ctype{narrow: "MPI_" + name}
	case IsHandle(name) || name == "status":
		return ctype{narrow: "MPI_" + strings.ToUpper(name[:1]) + name[1:]}
	}
	return ctype{narrow: "int"} // a number
}

// IsHandle reports whether a kind of arguments is a handle.
func IsHandle(kind string) bool {
	switch kind {
	case "comm", "datatype", "op", "group", "request", "message", "errhandler", "info", "session", "win", "file":
		return true
	}
	return false
}

// HasLarge reports whether f has a form for large counts.
func (f *Function) HasLarge() bool {
	for _, a := range f.Args {
		if f.ctypeOf(a).large != "" {
			return true
		}
	}
	return false
}

// Prototype returns how f is declared, or its form for large counts.
func (f *Function) Prototype(large bool) Prototype {
	p := Prototype{Result: "int"}
	if f.Result != "" {
		p.Result = f.ctypeOf(Arg{Kind: f.Result}).narrow
	}
	for _, a := range f.Args {
		p.Params = append(p.Params, f.param(a, large))
	}
	return p
}

func (f *Function) param(a Arg, large bool) Param {
	t := f.ctypeOf(a)
	p := Param{Type: t.narrow, Name: a.Name, Array: t.array}
	if large && t.large != "" {
		p.Type = t.large
	}
	isAddress := t.array != "" || a.Kind == "buffer" || a.Kind == "place" || a.Kind == "text" || a.Kind == "weights"
	switch {
	case a.Kind == "...":
		return Param{Type: "..."}
	case a.Length != "":
		p.Array = "[]"
	case a.Kind == "status" && !a.Out, a.Out && !strings.HasSuffix(p.Type, "*"):
		p.Type += " *"
	}
	reads := isAddress && !a.Stores || (a.Length != "" || a.Kind == "status") && !a.Out
	if reads && a.Kind != "ranges" {
		p.Type = "const " + p.Type
	}
	return p
}
