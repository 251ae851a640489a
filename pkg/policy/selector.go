package policy

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
)

// matcher matches pods or nodes; nil matches all.
type matcher struct {
	// Parts that are nil were not given.
	namespaces, labels labels.Selector
	expression         *expression
	// broken says why a part cannot be read; the others are good.
	broken error
}

// podMatcher reads a selector of pods.
func (b *builder) podMatcher(path *field.Path, s *berthv1alpha1.PodSelector) *matcher {
	if s == nil {
		return nil
	}
	m := &matcher{}
	m.namespaces = b.labels(m, path.Child("namespaceSelector"), s.NamespaceSelector)
	m.labels = b.labels(m, path.Child("selector"), s.Selector)
	m.expression = b.expression(m, path.Child("expression"), s.Expression, "pod", podSubject(&v1.Pod{}, nil))
	b.namespaces = b.namespaces || m.namespaces != nil || m.expression != nil && m.expression.readsNamespaces
	return m
}

// nodeMatcher reads a selector of nodes.
func (b *builder) nodeMatcher(path *field.Path, s *berthv1alpha1.NodeSelector) *matcher {
	m := &matcher{}
	m.labels = b.labels(m, path.Child("selector"), s.Selector)
	m.expression = b.expression(m, path.Child("expression"), s.Expression, "node", nodeSubject(&v1.Node{}))
	return m
}

// labels reads a selector of labels, nil if none is given or it cannot be read.
func (b *builder) labels(m *matcher, path *field.Path, s *metav1.LabelSelector) labels.Selector {
	if s == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		m.broken = err
		b.invalid(path, metav1.FormatLabelSelector(s), err)
		return nil
	}
	return selector
}

// expression compiles an expression, nil if none is given or it does not compile. One that fails for an object without
// labels is a mistake, too, but is evaluated for all objects: for some it does not fail.
func (b *builder) expression(m *matcher, path *field.Path, text, about string, bare *subject) *expression {
	if text == "" {
		return nil
	}
	e, err := compile(text)
	if err != nil {
		m.broken = err
		b.invalid(path, text, err)
		return nil
	}
	if _, err := e.on(bare); err != nil {
		b.invalid(path, text, fmt.Errorf("the expression fails for a %s without labels: %w", about, err))
	}
	return e
}

// matches reports whether the object is selected. An error means that this is not known: the parts that can be
// evaluated match.
func (m *matcher) matches(s *subject) (bool, error) {
	switch {
	case m == nil:
		return true, nil
	case m.namespaces != nil && !m.namespaces.Matches(labels.Set(s.ofNamespace)),
		m.labels != nil && !m.labels.Matches(labels.Set(s.labels)):
		return false, nil
	case m.broken != nil:
		return false, m.broken
	case m.expression != nil:
		return m.expression.on(s)
	}
	return true, nil
}
