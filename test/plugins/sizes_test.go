package plugins_test

import (
	"container/list"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"k8s.io/utils/lru"
)

// sizes counts what our own types hold: the entries of maps, caches, lists and channels by the field that holds them,
// such as "pkg/gang.book.groups", in all values together.
type sizes struct {
	held map[string]int
	seen map[visit]bool
}

// module is what the paths of our own packages begin with.
const module = "berth.dev/berth/"

type visit struct {
	at unsafe.Pointer
	of reflect.Type
}

// sizesOf follows all pointers from these values, but for those into types that are not ours. What only functions know
// is not found.
func sizesOf(roots ...any) map[string]int {
	s := sizes{held: map[string]int{}, seen: map[visit]bool{}}
	for _, root := range roots {
		s.walk("", reflect.ValueOf(root))
	}
	return s.held
}

// walk counts a value that a field holds.
func (s *sizes) walk(field string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		s.walk(field, v.Elem())
	case reflect.Pointer:
		key := visit{v.UnsafePointer(), v.Type()}
		if v.IsNil() || s.seen[key] {
			return
		}
		s.seen[key] = true
		s.walk(field, v.Elem())
	case reflect.Struct:
		s.walkStruct(field, v)
	case reflect.Map:
		s.held[field] += v.Len()
		for each := v.MapRange(); each.Next(); {
			s.walk(field, addressable(each.Key()))
			s.walk(field, addressable(each.Value()))
		}
	case reflect.Slice:
		s.held[field] += v.Len()
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			s.walk(field, v.Index(i))
		}
	case reflect.Chan:
		s.held[field] += v.Len()
	}
}

// addressable is a copy of a value whose fields can be read.
func addressable(v reflect.Value) reflect.Value {
	at := reflect.New(v.Type()).Elem()
	at.Set(v)
	return at
}

func (s *sizes) walkStruct(field string, v reflect.Value) {
	if !v.CanAddr() {
		v = addressable(v)
	}
	of := v.Type()
	switch held := v.Addr().Interface().(type) {
	case *sync.Map:
		held.Range(func(key, value any) bool {
			s.held[field]++
			s.walk(field, reflect.ValueOf(key))
			s.walk(field, reflect.ValueOf(value))
			return true
		})
		return
	case *lru.Cache:
		s.held[field] += held.Len()
		return
	case *list.List:
		s.held[field] += held.Len()
		return
	}
	if of.PkgPath() == "sync/atomic" {
		if load := v.Addr().MethodByName("Load"); load.IsValid() {
			s.walk(field, load.Call(nil)[0])
		}
		return
	}
	path, ours := strings.CutPrefix(of.PkgPath(), module)
	if !ours && of.Name() != "" {
		return
	}
	name, _, _ := strings.Cut(of.Name(), "[")
	for i := range of.NumField() {
		at := reflect.NewAt(of.Field(i).Type, unsafe.Pointer(v.Field(i).UnsafeAddr())).Elem()
		inside := field
		if of.Name() != "" {
			inside = path + "." + name + "." + of.Field(i).Name
		}
		s.walk(inside, at)
	}
}
