package policy

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1alpha1 "berth.dev/berth/pkg/apis/placement/v1alpha1"
)

// podMatcher matches pods; nil matches all.
type podMatcher struct {
	// Parts that are nil were not given.
	namespaces, labels labels.Selector
	expression         *expression
	// broken says why a part cannot be read; the others are good.
	broken error
}

// newPodMatcher reads a selector. What cannot be read is in errs, and the matcher knows of it.
func newPodMatcher(path *field.Path, s *placementv1alpha1.PodSelector) (m *podMatcher, errs field.ErrorList) {
	if s == nil {
		return nil, nil
	}
	m = &podMatcher{}
	note := func(err *field.Error) {
		errs = append(errs, err)
		m.broken = err
	}
	m.namespaces = readLabels(path.Child("namespaceSelector"), s.NamespaceSelector, note)
	m.labels = readLabels(path.Child("selector"), s.Selector, note)
	m.expression = readExpression(path.Child("expression"), podVariable, s.Expression, note)
	if m.expression != nil {
		if _, err := m.expression.on(podSubject(&v1.Pod{}, nil)); err != nil {
			errs = append(errs, mayFail(path.Child("expression"), s.Expression, "a pod without labels and annotations", err))
		}
	}
	if s.NamespaceSelector == nil && s.Selector == nil && s.Expression == "" {
		note(field.Required(path, "one of namespaceSelector, selector and expression"))
	}
	return m, errs
}

// readsNamespaces reports whether the matcher depends on the labels of namespaces.
func (m *podMatcher) readsNamespaces() bool {
	return m != nil && (m.namespaces != nil || m.expression != nil && m.expression.readsNamespaces)
}

// matches reports whether the pod is selected. With an error it is not known: the parts that can be evaluated match.
func (m *podMatcher) matches(s *subject) (bool, error) {
	switch {
	case m == nil:
		return true, nil
	case m.namespaces != nil && !m.namespaces.Matches(labels.Set(s.ofNamespace)),
		m.labels != nil && !m.labels.Matches(labels.Set(s.labels)):
		return false, nil
	case m.broken != nil:
		return true, m.broken
	case m.expression != nil:
		yes, err := m.expression.on(s)
		return yes || err != nil, err
	}
	return true, nil
}

// nodeMatcher matches nodes; nil matches all.
type nodeMatcher struct {
	labels     labels.Selector
	expression *expression
	broken     error
}

func newNodeMatcher(path *field.Path, s *placementv1alpha1.NodeSelector) (m *nodeMatcher, errs field.ErrorList) {
	if s == nil {
		return nil, nil
	}
	m = &nodeMatcher{}
	note := func(err *field.Error) {
		errs = append(errs, err)
		m.broken = err
	}
	m.labels = readLabels(path.Child("selector"), s.Selector, note)
	m.expression = readExpression(path.Child("expression"), nodeVariable, s.Expression, note)
	if m.expression != nil {
		if _, err := m.expression.on(nodeSubject(&v1.Node{})); err != nil {
			errs = append(errs, mayFail(path.Child("expression"), s.Expression, "a node without labels", err))
		}
	}
	if s.Selector == nil && s.Expression == "" {
		note(field.Required(path, "one of selector and expression"))
	}
	return m, errs
}

// matches reports whether the node is selected. With an error it is not known.
func (m *nodeMatcher) matches(s *subject) (bool, error) {
	switch {
	case m == nil:
		return true, nil
	case m.labels != nil && !m.labels.Matches(labels.Set(s.labels)):
		return false, nil
	case m.broken != nil:
		return false, m.broken
	case m.expression != nil:
		return m.expression.on(s)
	}
	return true, nil
}

func readLabels(path *field.Path, s *metav1.LabelSelector, note func(*field.Error)) labels.Selector {
	if s == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		note(field.Invalid(path, metav1.FormatLabelSelector(s), err.Error()))
		return nil
	}
	return selector
}

func readExpression(path *field.Path, variable, text string, note func(*field.Error)) *expression {
	if text == "" {
		return nil
	}
	e, err := compile(variable, text)
	if err != nil {
		note(field.Invalid(path, text, err.Error()))
		return nil
	}
	return e
}

// errMayFail marks an expression that can be compiled and fails for some objects.
var errMayFail = errors.New("the expression fails")

// mayFail is what to say of an expression that fails for an object as plain as there may be.
func mayFail(path *field.Path, text, object string, err error) *field.Error {
	e := field.Invalid(path, text, fmt.Sprintf("%v for %s: %v", errMayFail, object, err))
	e.Origin = errMayFail.Error()
	return e
}

// MayFail reports whether err says of an expression that it fails for some objects; it is evaluated all the same.
func MayFail(err *field.Error) bool { return err.Origin == errMayFail.Error() }
