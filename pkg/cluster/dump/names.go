package dump

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/wellknown"
)

// NameHasher replaces names by keyed hashes. Equal names get equal hashes, so that references stay valid; without the
// key, guessed names cannot be verified.
type NameHasher struct {
	key []byte
	// keys are the names by which GPUs are known.
	keys *gpuview.Keys
}

// NewNameHasher makes a hasher. The key should be random and not be stored.
func NewNameHasher(key []byte, keys *gpuview.Keys) *NameHasher {
	return &NameHasher{key: key, keys: keys}
}

// Hash hashes the fields of obj that are listed in paths and nameAnnotations, and every UUID. obj must come from Keep.
// Not hashed are names that Kubernetes gives, values of labels that describe hardware, price or place, small numbers,
// and all fields that are not listed. Rules with expressions are removed from placement policies.
func (h *NameHasher) Hash(obj runtime.Object) (runtime.Object, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("reading a %s: %w", gvk.Kind, err)
	}
	name, _, _ := unstructured.NestedString(content, "metadata", "name")
	h.walk("", content)
	if metadata, ok := content["metadata"].(map[string]any); ok && gvk.Kind == "CSIDriver" {
		metadata["name"] = name // other objects name it as their driver
	}
	if _, custom := obj.(*unstructured.Unstructured); custom {
		return &unstructured.Unstructured{Object: content}, nil
	}
	out, err := scheme.Scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("writing a %s: %w", gvk.Kind, err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, out); err != nil {
		return nil, fmt.Errorf("writing a %s: %w", gvk.Kind, err)
	}
	out.GetObjectKind().SetGroupVersionKind(gvk)
	return out, nil
}

// walk hashes the fields of one object in place. Parent is the name of the field that has the object.
func (h *NameHasher) walk(parent string, fields map[string]any) {
	label, _ := fields["key"].(string)
	for field, value := range maps.Clone(fields) {
		rule, listed := paths[parent+"."+field]
		if !listed {
			rule = paths[field]
		}
		delete(fields, field)
		items, _ := value.([]any)
		switch {
		case rule == drop, rule == hashMessage && !isJSON(value): // a sentence contains names
			continue
		case rule == hashMessage:
			fields[field] = h.structured(value, grantFields...)
			continue
		case rule == dropExpressions && items != nil:
			// An expression contains names, and would match nothing if they were hashed elsewhere.
			value = slices.DeleteFunc(items, hasExpression)
		case rule == dropExpressions && hasExpression(value):
			continue
		case field == "string" && strings.HasSuffix(strings.ToLower(parent), "uuid") && !uuid.MatchString(fmt.Sprint(value)):
			rule = hashName // the identity of a device in another form
		}
		fields[h.text(field)] = h.hashed(value, rule, field, label)
	}
}

// hashed returns the value of a field with hashes. Label is the key if the value is that of a label.
func (h *NameHasher) hashed(value any, rule rule, field, label string) any {
	switch v := value.(type) {
	case string:
		switch {
		case rule == hashName:
			return h.name(v)
		case rule == hashValue && label != "":
			return h.labelValue(label, v)
		}
		return h.text(v)
	case []any:
		for i := range v {
			v[i] = h.hashed(v[i], rule, field, label)
		}
	case map[string]any:
		switch rule {
		case hashAnnotations:
			h.annotations(v)
		case hashLabels:
			for key, of := range v {
				if value, ok := of.(string); ok {
					v[key] = h.labelValue(key, value)
				} else { // a selector that has its labels in fields below
					v[key] = h.hashed(of, paths[key], key, "")
				}
			}
		default:
			h.walk(field, v)
		}
	}
	return value
}

// annotations hashes names in annotations. It removes the name of the price window, which a replay could not look up:
// the configuration is not part of a dump. It removes the groups of a gang; the members stay in the gang.
func (h *NameHasher) annotations(all map[string]any) {
	delete(all, wellknown.StartWindowKey)
	delete(all, wellknown.GroupsKey)
	if label, named := all[wellknown.RoleLabelKey].(string); named && !openLabel(label) {
		delete(all, wellknown.MinMembersByRoleKey)
	}
	for key, value := range all {
		text, ok := value.(string)
		switch {
		case !ok:
		case slices.Contains(nameAnnotations, key):
			all[key] = nameInList.ReplaceAllStringFunc(text, h.nameOrNumber)
		case key == wellknown.GPUAssignedKey:
			all[key] = h.structured(text, grantFields...)
		case isJSON(text):
			all[key] = h.structured(text)
		default:
			all[key] = h.text(text)
		}
	}
}

// nameInList is a name or a number in a list of them.
var nameInList = regexp.MustCompile(`[^,=+\s]+`)

func isJSON(value any) bool {
	text, _ := value.(string)
	return strings.HasPrefix(text, "{") && json.Valid([]byte(text))
}

// grantFields are the fields of the record of the GPUs that a pod was given.
var grantFields = []string{"pod", "node", "devices", "uuids", "milli", "memMiB"}

// structured hashes names in a text that is a JSON object, and removes all but the given fields, if any are given.
// Other texts become empty.
func (h *NameHasher) structured(text any, fields ...string) any {
	value := map[string]any{}
	if json.Unmarshal([]byte(fmt.Sprint(text)), &value) != nil {
		return ""
	}
	maps.DeleteFunc(value, func(field string, _ any) bool { return len(fields) > 0 && !slices.Contains(fields, field) })
	h.walk("", value)
	hashed, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(hashed)
}

// name hashes a name. The hash is a valid name of every kind of object and a valid label value.
func (h *NameHasher) name(name string) string {
	if slices.Contains(keptNames, name) || strings.HasPrefix(name, "system-") {
		return name
	}
	return "h" + hex.EncodeToString(h.sum(name)[:8])
}

func (h *NameHasher) sum(text string) []byte {
	mac := hmac.New(sha256.New, h.key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// uuid matches a UUID within a text, such as GPU-UUID.
var uuid = regexp.MustCompile(`[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)

// text hashes the parts of a text that identify the cluster: UUIDs, and the device class in the name of a resource.
func (h *NameHasher) text(text string) string {
	if class, ok := strings.CutPrefix(text, resourcev1.ResourceDeviceClassPrefix); ok {
		return resourcev1.ResourceDeviceClassPrefix + h.name(class)
	}
	return uuid.ReplaceAllStringFunc(text, func(id string) string {
		sum := h.sum(strings.ToLower(id))
		return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	})
}

func (h *NameHasher) labelValue(key, value string) string {
	switch {
	case value == "true", value == "false":
		return value
	case openLabel(key), h.keys.ReadsLabel(key):
		return h.text(value)
	}
	return h.nameOrNumber(value)
}

// nameOrNumber hashes a name. Small numbers stay: affinities compare them, and they number the pods of controllers.
func (h *NameHasher) nameOrNumber(text string) string {
	if n, err := strconv.Atoi(text); err == nil && -1000 < n && n < 1000 {
		return text
	}
	return h.name(text)
}

func hasExpression(rule any) bool {
	text, err := json.Marshal(rule)
	return err != nil || bytes.Contains(text, []byte(`"expression":`))
}
