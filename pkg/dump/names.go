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

	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/grouptree"
	"berth.dev/berth/pkg/wellknown"
)

// NameHasher replaces names by keyed hashes, equal names by equal ones, so that references still hold and guesses
// cannot be tried out without the key.
type NameHasher struct {
	key []byte
	// keys are the names by which GPUs are known.
	keys *gpuview.Keys
	// compared are the labels whose numbers are compared.
	compared map[string]bool
}

// NewNameHasher makes a hasher; the key should be random and be kept nowhere.
func NewNameHasher(key []byte, keys *gpuview.Keys) *NameHasher {
	return &NameHasher{key: key, keys: keys, compared: map[string]bool{}}
}

// Learn notes which labels are compared by their numbers, which have to stay. It comes before Hash, for all objects of
// a dump.
func (h *NameHasher) Learn(obj runtime.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fmt.Errorf("reading a %s: %w", obj.GetObjectKind().GroupVersionKind().Kind, err)
	}
	h.learn(content)
	return nil
}

func (h *NameHasher) learn(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			h.learn(item)
		}
	case map[string]any:
		if key, ok := v["key"].(string); ok && (v["operator"] == "Gt" || v["operator"] == "Lt") {
			h.compared[key] = true
		}
		for _, field := range v {
			h.learn(field)
		}
	}
}

// Hash returns obj, as Keep makes it, with hashes in the place of what is listed in paths and nameAnnotations, and of
// UUIDs wherever they are. Names that Kubernetes itself gives stay, and so do the values of labels that describe
// hardware, price or place, numbers that are compared, and what is not listed. Of a placement policy the rules with
// expressions are left out.
func (h *NameHasher) Hash(obj runtime.Object) (runtime.Object, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("reading a %s: %w", gvk.Kind, err)
	}
	if gvk.Kind == "PlacementPolicy" {
		dropExpressions(content)
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

// walk hashes within one object, in place. Parent is the name of the field that holds it.
func (h *NameHasher) walk(parent string, fields map[string]any) {
	label, _ := fields["key"].(string)
	for field, value := range maps.Clone(fields) {
		rule, listed := paths[parent+"."+field]
		if !listed {
			rule = paths[field]
		}
		switch {
		case rule == dropMessage:
			delete(fields, field) // sentences have names in them
			if text, ok := value.(string); ok && fields["type"] == string(gpuview.GPUsAssigned) {
				fields[field] = h.text(gpuview.RenameGrant(text, h.name))
			}
			continue
		case field == "string" && strings.HasSuffix(strings.ToLower(parent), "uuid"): // an attribute of a device
			rule = hashIdentity
		}
		delete(fields, field)
		fields[h.text(field)] = h.hashed(value, rule, field, label)
	}
}

// hashed returns what comes in the place of the value of a field. Label is the key of a label that stands beside it.
func (h *NameHasher) hashed(value any, rule rule, field, label string) any {
	switch v := value.(type) {
	case string:
		switch {
		case rule == hashName, rule == hashIdentity && !uuid.MatchString(v):
			return h.name(v)
		case rule == hashImage:
			return h.image(v)
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
		case hashKeys:
			for key, of := range maps.Clone(v) {
				delete(v, key)
				v[h.name(key)] = of
			}
		default:
			h.walk(field, v)
		}
	}
	return value
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

// uuid is a UUID as it stands in a text, for example in that of a GPU behind "GPU-".
var uuid = regexp.MustCompile(`[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)

// text hashes what identifies the cluster within a text that else stays: UUIDs, and the class in the name of a resource
// that is named after one.
func (h *NameHasher) text(text string) string {
	if class, ok := strings.CutPrefix(text, resourcev1.ResourceDeviceClassPrefix); ok {
		return resourcev1.ResourceDeviceClassPrefix + h.name(class)
	}
	return uuid.ReplaceAllStringFunc(text, func(id string) string {
		sum := h.sum(strings.ToLower(id))
		return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	})
}

// image hashes the name of an image so that a pod's and a node's still match: without a tag the latest is meant.
func (h *NameHasher) image(image string) string {
	if image == "" {
		return ""
	}
	if strings.LastIndexByte(image, ':') <= strings.LastIndexByte(image, '/') {
		image += ":latest"
	}
	return h.name(image) + ":latest"
}

func (h *NameHasher) labelValue(key, value string) string {
	if value == "" || value == "true" || value == "false" {
		return value
	}
	if key == wellknown.GroupKey {
		return grouptree.MapGroupName(value, h.part)
	}
	_, notANumber := strconv.ParseInt(value, 10, 64)
	if openLabel(key) || h.keys.ReadsLabel(key) || notANumber == nil && (h.compared[key] || gangview.OrdinalLabel(key)) {
		return h.text(value)
	}
	return h.name(value)
}

// part hashes one of several names in a label value, which has room for four of them with their numbers.
func (h *NameHasher) part(name string) string {
	if name == "" {
		return name
	}
	return "g" + hex.EncodeToString(h.sum(name)[:4])
}

// dropExpressions removes the rules of a placement policy that have expressions: names occur in these, and would match
// nothing if they were hashed.
func dropExpressions(policy map[string]any) {
	spec, _ := policy["spec"].(map[string]any)
	compliance, _ := spec["compliance"].(map[string]any)
	for _, of := range []map[string]any{spec, compliance} {
		for _, field := range []string{"licenses", "datasets", "rules"} {
			if rules, ok := of[field].([]any); ok {
				of[field] = slices.DeleteFunc(rules, hasExpression)
			}
		}
	}
	if hasExpression(compliance["pods"]) {
		delete(spec, "compliance")
	}
}

func hasExpression(rule any) bool {
	text, err := json.Marshal(rule)
	return err != nil || bytes.Contains(text, []byte(`"expression":`))
}
