package memapi

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// serializerFor chooses protobuf for a built-in kind when the client accepts it, and JSON otherwise.
func serializerFor(header http.Header, k kind) runtime.SerializerInfo {
	mediaType := runtime.ContentTypeJSON
	if !k.custom && strings.Contains(header.Get("Accept"), runtime.ContentTypeProtobuf) {
		mediaType = runtime.ContentTypeProtobuf
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	return info
}

// encode writes obj, whose kind must be set: the serializers take it from the object.
func encode(info runtime.SerializerInfo, obj runtime.Object) ([]byte, error) {
	var buf bytes.Buffer
	if err := info.Serializer.Encode(obj, &buf); err != nil {
		return nil, fmt.Errorf("encoding a %T: %w", obj, err)
	}
	return buf.Bytes(), nil
}

// encodeEvent makes a watch event a frame of the stream format that goes with info.
func encodeEvent(info runtime.SerializerInfo, t EventType, obj runtime.Object) ([]byte, error) {
	raw, err := encode(info, obj)
	if err != nil {
		return nil, err
	}
	var frame bytes.Buffer
	event := &metav1.WatchEvent{Type: string(t), Object: runtime.RawExtension{Raw: raw}}
	if err := info.StreamSerializer.Encode(event, info.StreamSerializer.NewFrameWriter(&frame)); err != nil {
		return nil, fmt.Errorf("encoding a watch event: %w", err)
	}
	return frame.Bytes(), nil
}

func encodeList(info runtime.SerializerInfo, k kind, objects []runtime.Object, version string) ([]byte, error) {
	listKind := k.gvk
	listKind.Kind += "List"
	if k.custom {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(listKind)
		list.SetResourceVersion(version)
		for _, obj := range objects {
			list.Items = append(list.Items, *obj.(*unstructured.Unstructured))
		}
		return encode(info, list)
	}
	list, err := scheme.Scheme.New(listKind)
	if err != nil {
		return nil, fmt.Errorf("making a %s: %w", listKind.Kind, err)
	}
	if err := meta.SetList(list, objects); err != nil {
		return nil, fmt.Errorf("filling a %s: %w", listKind.Kind, err)
	}
	list.GetObjectKind().SetGroupVersionKind(listKind)
	m, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of a %s: %w", listKind.Kind, err)
	}
	m.SetResourceVersion(version)
	return encode(info, list)
}

func decode(body []byte, k kind) (runtime.Object, error) {
	if k.custom {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(body); err != nil {
			return nil, errBadRequest("the body is not a JSON object: " + err.Error())
		}
		return obj, nil
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, &k.gvk, nil)
	if err != nil {
		return nil, errBadRequest("the body cannot be decoded: " + err.Error())
	}
	return obj, nil
}

func contentType(header http.Header) string {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return mediaType
}

func respond(req *http.Request, code int, mediaType string, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": []string{mediaType}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       req,
	}
}
