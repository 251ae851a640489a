package memapi

import (
	"encoding/json"
	"net/http"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// discover answers the paths that name no resource: the lists of groups, versions and resources, and the version.
func (s *Server) discover(req *http.Request) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	var answer any
	switch {
	case len(parts) == 1 && parts[0] == "version":
		answer = version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2"}
	case len(parts) == 1 && parts[0] == "api":
		answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"},
			Versions: []string{"v1"}}
	case len(parts) == 1 && parts[0] == "apis":
		answer = s.groups()
	case len(parts) == 2 && parts[0] == "api":
		answer = s.resources(schema.GroupVersion{Version: parts[1]})
	case len(parts) == 3 && parts[0] == "apis":
		answer = s.resources(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	}
	if list, ok := answer.(*metav1.APIResourceList); answer == nil || ok && len(list.APIResources) == 0 {
		return failure(req, errUnknownResource(schema.GroupVersionResource{Resource: req.URL.Path}))
	}
	encoded, err := json.Marshal(answer)
	if err != nil {
		return failure(req, err)
	}
	return respond(req, http.StatusOK, runtime.ContentTypeJSON, encoded)
}

func (s *Server) groups() *metav1.APIGroupList {
	versions := map[string]map[string]bool{}
	for gvr := range s.kinds {
		if versions[gvr.Group] == nil {
			versions[gvr.Group] = map[string]bool{}
		}
		versions[gvr.Group][gvr.Version] = true
	}
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for name, set := range versions {
		if name == "" {
			continue
		}
		group := metav1.APIGroup{Name: name}
		for v := range set {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
		}
		sort.Slice(group.Versions, func(i, j int) bool { return group.Versions[i].Version < group.Versions[j].Version })
		group.PreferredVersion = group.Versions[0]
		list.Groups = append(list.Groups, group)
	}
	sort.Slice(list.Groups, func(i, j int) bool { return list.Groups[i].Name < list.Groups[j].Name })
	return list
}

func (s *Server) resources(gv schema.GroupVersion) *metav1.APIResourceList {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: gv.String()}
	for gvr, k := range s.kinds {
		if gvr.GroupVersion() == gv {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: gvr.Resource, Kind: k.gvk.Kind, Namespaced: k.namespaced,
				Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"},
			})
		}
	}
	sort.Slice(list.APIResources, func(i, j int) bool { return list.APIResources[i].Name < list.APIResources[j].Name })
	return list
}
