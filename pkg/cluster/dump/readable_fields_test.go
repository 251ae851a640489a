package dump

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/cluster/inputs"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// fill gives each text of an object, and each key of its maps, a word that tells where it is.
func fill(v reflect.Value, path string, depth int) {
	if depth > 30 {
		return
	}
	switch at := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*at = resource.MustParse("1")
		return
	case *metav1.Time:
		at.Time = time.Unix(1, 0)
		return
	case *metav1.MicroTime:
		at.Time = time.Unix(1, 0)
		return
	case *intstr.IntOrString:
		*at = intstr.FromInt32(1)
		return
	case *runtime.RawExtension:
		at.Raw = []byte(`{}`)
		return
	case *metav1.FieldsV1:
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), path, depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			at := path
			if tag != "" {
				at += "." + tag
			}
			fill(v.Field(i), at, depth+1)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), path+"[]", depth+1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.SetString("acme" + path + "{key}")
		fill(value, path+"{}", depth+1)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("acme" + path)
	case reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(1)
	}
}

// readableIn returns the paths of the texts of a value that still are the words of fill.
func readableIn(value any) []string {
	switch v := value.(type) {
	case string:
		if _, after, found := strings.Cut(v, "acme"); found {
			return []string{after}
		}
	case []any:
		var all []string
		for _, item := range v {
			all = append(all, readableIn(item)...)
		}
		return all
	case map[string]any:
		var all []string
		for key, item := range v {
			all = append(append(all, readableIn(key)...), readableIn(item)...)
		}
		return all
	}
	return nil
}

func TestWhatStaysReadableIsKnown(t *testing.T) {
	t.Parallel()
	custom := map[string]runtime.Object{
		"PlacementPolicy": &berthv1alpha1.PlacementPolicy{}, "IPPool": &berthv1alpha1.IPPool{},
		"IPReservation": &berthv1alpha1.IPReservation{},
		"PodGroup":      &schedulingv1alpha1.PodGroup{},
	}
	var got []string
	for _, kind := range inputs.Kinds() {
		gvk := kind.GroupVersion().WithKind(kind.Kind)
		obj := custom[kind.Kind]
		if scheme.Scheme.Recognizes(gvk) {
			var err error
			if obj, err = scheme.Scheme.New(gvk); err != nil {
				t.Fatal(err)
			}
		}
		if obj == nil {
			continue
		}
		fill(reflect.ValueOf(obj).Elem(), "", 0)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		require.NoError(t, err)
		listed := &unstructured.Unstructured{Object: content}
		listed.SetGroupVersionKind(gvk)
		kept, err := inputs.Keep(listed)
		require.NoError(t, err)
		hashed, err := NewNameHasher([]byte("key"), usualKeys()).Hash(kept)
		require.NoError(t, err)
		data, err := json.Marshal(hashed)
		require.NoError(t, err)
		var value any
		require.NoError(t, json.Unmarshal(data, &value))
		for _, path := range readableIn(value) {
			got = append(got, fmt.Sprintf("%s%s", kind.Kind, path))
		}
	}
	slices.Sort(got)
	got = slices.Compact(got)
	want, err := os.ReadFile("testdata/readable-fields.txt")
	require.NoError(t, err)
	assert.Equal(t, "fields that are readable although names are hashed: none of them may hold a name",
		strings.Fields(string(want)), got)
}
