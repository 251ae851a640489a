package dump

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
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
	"berth.dev/berth/pkg/grouptext"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// NameHasher replaces names by keyed hashes, equal names by equal ones, so that references still hold and guesses
// cannot be tried out without the key.
type NameHasher struct {
	key    []byte
	hashed map[string]string
	// keys are the names by which GPUs are known.
	keys *gpuview.Keys
	// compared are labels whose numbers are compared, models the products that there are, in small letters.
	compared, models map[string]bool
	// readable are the labels and annotations with a value that was left as it was.
	readable map[string]bool
}

// NewNameHasher makes a hasher; the key should be random and be kept nowhere.
func NewNameHasher(key []byte, keys *gpuview.Keys) *NameHasher {
	return &NameHasher{key: key, keys: keys, hashed: map[string]string{}, compared: map[string]bool{},
		models: map[string]bool{}, readable: map[string]bool{}}
}

// Hash returns obj, as Keep makes it, with hashes for the names of objects, images and devices, for UUIDs, and for the
// values of labels, taints and selectors whose key is not known to describe hardware, price or place. Names that
// Kubernetes itself gives stay, and so do names of profiles, resources and drivers, the keys of labels, and numbers
// that are compared or count the pods of a set. Models of GPUs that the cluster does not have, and values that cannot
// be read, are hashed; names of price windows are left out. A resource that is named after a device class follows the
// name of the class. Addresses on which pods listen are left out.
func (h *NameHasher) Hash(obj runtime.Object) (runtime.Object, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("reading a %s: %w", gvk.Kind, err)
	}
	if gvk.Kind == "PlacementPolicy" {
		dropExpressions(content)
	}
	grants := h.grants(content)
	driver, _, _ := unstructured.NestedString(content, "metadata", "name")
	h.object(content)
	if metadata, ok := content["metadata"].(map[string]any); ok && gvk.Kind == "CSIDriver" {
		metadata["name"] = driver // other objects name it as their driver
	}
	if status, ok := content["status"].(map[string]any); ok {
		dropMessages(status)
	}
	for _, g := range grants {
		g.condition["message"] = h.text(g.message)
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

// nameFields hold a name or an identity.
var nameFields = []string{
	"name", "namespace", "generateName", "uid", "nodeName", "nominatedNodeName", "volumeName", "claimName",
	"storageClassName",
	"persistentVolumeName", "priorityClassName", "resourceClaimName", "resourceClaimTemplateName", "deviceClassName",
	"podGroupName",
	"node", "nodeID", "pool", "device", "volumeHandle", "pdName", "volumeID", "diskName", "diskURI", "iqn", "targetPortal",
	"license", "dataset", "statefulSet", "podUID", "runtimeClassName", "serviceName", "shareID", "counterSet",
	"containerName",
	"workloadName", "templateName", "parentCompositePodGroupName",
}

// nameLists hold lists of names, namedMaps have names for keys, and ownNames are things whose own name is none of the
// cluster's: gates, drivers, and what a claim calls its requests.
var (
	nameLists = []string{"namespaces", "monitors", "containers", "reservedNodes"}
	namedMaps = []string{"disruptedPods", "minTaskMember"}
	ownNames  = []string{"schedulingGates", "drivers", "runtimeHandlers", "requests", "firstAvailable"}
)

// labelMaps hold labels or wanted labels.
var labelMaps = []string{"labels", "matchLabels", "nodeSelector", "selector"}

// keptNames are the same in every cluster.
var keptNames = []string{"default", "kube-system", "kube-public", "kube-node-lease", ""}

// object hashes within one object, in place.
func (h *NameHasher) object(fields map[string]any) {
	labelKey, _ := fields["key"].(string)
	for _, field := range slices.Collect(maps.Keys(fields)) {
		if renamed := h.text(field); renamed != field {
			fields[renamed] = fields[field]
			delete(fields, field)
		}
	}
	for field, value := range fields {
		switch v := value.(type) {
		case string:
			switch {
			case field == "value" && labelKey != "":
				fields[field] = h.labelValue(labelKey, v)
			case slices.Contains(nameFields, field):
				fields[field] = h.name(v)
			case field == "image":
				fields[field] = h.image(v)
			default:
				fields[field] = h.text(v)
			}
		case map[string]any:
			id, isText := v["string"].(string)
			switch {
			case isText && strings.HasSuffix(strings.ToLower(field), "uuid"): // an attribute of a device
				v["string"] = h.identity(id)
			case field == "annotations":
				h.annotations(v)
			case slices.Contains(namedMaps, field):
				for _, name := range slices.Collect(maps.Keys(v)) {
					of := v[name]
					delete(v, name)
					v[h.name(name)] = of
				}
			case slices.Contains(labelMaps, field) && stringsOnly(v):
				for key, labelled := range v {
					v[key] = h.labelValue(key, labelled.(string))
				}
			default:
				h.object(v)
			}
		case []any:
			h.list(field, labelKey, v)
		}
	}
}

func (h *NameHasher) list(field, labelKey string, items []any) {
	for i, item := range items {
		switch v := item.(type) {
		case map[string]any:
			if field == "ports" {
				delete(v, "hostIP")
			}
			own := v["name"]
			h.object(v)
			if slices.Contains(ownNames, field) && own != nil {
				v["name"] = own
			}
		case string:
			switch {
			case field == "values" && labelKey != "":
				items[i] = h.labelValue(labelKey, v)
			case slices.Contains(nameLists, field):
				items[i] = h.name(v)
			case field == "names":
				items[i] = h.image(v)
			default:
				items[i] = h.text(v)
			}
		}
	}
}

func (h *NameHasher) annotations(annotations map[string]any) {
	for _, key := range nameAnnotations() {
		if value, ok := annotations[key].(string); ok {
			annotations[key] = h.name(value)
		}
	}
	if value, ok := annotations[wellknown.GPUAssignedKey].(string); ok {
		annotations[wellknown.GPUAssignedKey] = gpuview.RenameGrant(value, h.name)
	}
	if near, ok := annotations[wellknown.NearKey].(string); ok {
		near = podview.MapNear(near, h.labelValue)
		annotations[wellknown.NearKey] = near
		if near != "" {
			// The keys of labels stay in it, and numbers that are compared.
			h.readable["annotation "+wellknown.NearKey] = true
		}
	}
	if licenses, ok := annotations[wellknown.LicensesKey].(string); ok {
		annotations[wellknown.LicensesKey] = podview.MapLicenses(licenses, h.name)
	}
	if datasets, ok := annotations[wellknown.DatasetsKey].(string); ok {
		annotations[wellknown.DatasetsKey] = podview.MapDatasets(datasets, h.name)
	}
	h.groups(annotations)
	// Which windows there are is in the configuration, which a dump does not hold: without the name the pod may start.
	delete(annotations, wellknown.StartWindowKey)
	for key, value := range annotations {
		text, ok := value.(string)
		switch {
		case !ok:
		case slices.Contains(modelAnnotations(), key):
			annotations[key] = h.modelList(text)
		case slices.Contains(mapped, key) || slices.Contains(nameAnnotations(), key):
			annotations[key] = h.text(text)
		case structured(key) || plain(key, text):
			h.readable["annotation "+key] = true
			annotations[key] = h.text(text)
		default:
			annotations[key] = h.name(text) // it cannot be read, whatever it says
		}
	}
}

func stringsOnly(m map[string]any) bool {
	for _, value := range m {
		if _, ok := value.(string); !ok {
			return false
		}
	}
	return true
}

// name hashes a name. The hash is a valid name of every kind of object and a valid label value.
func (h *NameHasher) name(name string) string {
	if slices.Contains(keptNames, name) || strings.HasPrefix(name, "system-") {
		return name
	}
	if hashed, ok := h.hashed[name]; ok {
		return hashed
	}
	hashed := "h" + hex.EncodeToString(h.sum(name)[:8])
	h.hashed[name] = hashed
	return hashed
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

// identity hashes the identity of a device, whatever it looks like.
func (h *NameHasher) identity(id string) string {
	if uuid.MatchString(id) {
		return h.text(id)
	}
	return h.name(id)
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
		return grouptext.MapName(value, h.part)
	}
	_, notANumber := strconv.ParseInt(value, 10, 64)
	if openLabel(key) || h.keys.ReadsLabel(key) || notANumber == nil && (h.compared[key] || gangview.OrdinalLabel(key)) {
		h.readable["label "+key] = true
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
	drop := func(of map[string]any, field string) {
		rules, ok := of[field].([]any)
		if ok {
			of[field] = slices.DeleteFunc(rules, hasExpression)
		}
	}
	drop(spec, "licenses")
	drop(spec, "datasets")
	if compliance, ok := spec["compliance"].(map[string]any); ok {
		drop(compliance, "rules")
		if hasExpression(compliance["pods"]) {
			delete(spec, "compliance")
		}
	}
}

func hasExpression(value any) bool {
	fields, ok := value.(map[string]any)
	if !ok {
		return false
	}
	if _, ok := fields["expression"]; ok {
		return true
	}
	for _, below := range fields {
		if hasExpression(below) {
			return true
		}
	}
	return false
}

// grant is a condition that says which devices a pod was given, and what it is to say.
type grant struct {
	condition map[string]any
	message   string
}

// grants finds these conditions of an object, before their words are hashed as any text is.
func (h *NameHasher) grants(content map[string]any) []grant {
	status, _ := content["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	var found []grant
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if message, ok := condition["message"].(string); ok && condition["type"] == string(gpuview.GPUsAssigned) {
			found = append(found, grant{condition, gpuview.RenameGrant(message, h.name)})
		}
	}
	return found
}

// dropMessages removes sentences, in which names occur, from the conditions of a status.
func dropMessages(status map[string]any) {
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok {
			delete(condition, "message")
		}
	}
}
