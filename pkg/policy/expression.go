package policy

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// expressionCost bounds one evaluation, in the units of CEL: about a millisecond. An expression that looks up a few
// labels costs less than 100.
const expressionCost = 10_000

// namespaceLabels is the field of pod that has the labels of its namespace.
const namespaceLabels = "namespaceLabels"

// environmentOf is the CEL environment of expressions. It is made when it is needed first: a scheduler without policies
// needs none.
var environmentOf = sync.OnceValues(func() (*cel.Env, error) {
	text := apiservercel.NewMapType(apiservercel.StringType, apiservercel.StringType, -1)
	options := environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0)}
	for variable, types := range map[string]map[string]*apiservercel.DeclType{
		"pod":  {"namespace": apiservercel.StringType, "labels": text, "annotations": text, namespaceLabels: text},
		"node": {"name": apiservercel.StringType, "labels": text},
	} {
		fields := map[string]*apiservercel.DeclField{}
		for name, t := range types {
			fields[name] = apiservercel.NewDeclField(name, t, true, nil, nil)
		}
		object := apiservercel.NewObjectType("berth."+variable, fields)
		options.DeclTypes = append(options.DeclTypes, object)
		options.EnvOptions = append(options.EnvOptions, cel.Variable(variable, object.CelType()))
	}
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(options)
	if err != nil {
		return nil, fmt.Errorf("making the environment of expressions: %w", err)
	}
	return set.StoredExpressionsEnv(), nil
})

// expression is a compiled expression that yields true or false.
type expression struct {
	program cel.Program
	// readsNamespaces is set if it may read the labels of the pod's namespace.
	readsNamespaces bool
}

// compile compiles an expression. Errors name the place in it.
func compile(text string) (*expression, error) {
	env, err := environmentOf()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, errors.New(oneLine(issues.Err().Error()))
	}
	if ast.OutputType() != cel.BoolType {
		return nil, fmt.Errorf("the expression yields %s, want bool", ast.OutputType())
	}
	program, err := env.Program(ast, cel.CostLimit(expressionCost), cel.CostTracking(&library.CostEstimator{}))
	if err != nil {
		return nil, fmt.Errorf("preparing the expression: %w", err)
	}
	return &expression{program: program, readsNamespaces: strings.Contains(text, namespaceLabels)}, nil
}

// subject is a pod or a node that rules are about.
type subject struct {
	labels map[string]string
	// ofNamespace are the labels of a pod's namespace.
	ofNamespace map[string]string
	// input is what expressions read. It is made when the first one asks.
	input func() map[string]any
}

func podSubject(pod *v1.Pod, ofNamespace map[string]string) *subject {
	return &subject{pod.Labels, ofNamespace, sync.OnceValue(func() map[string]any {
		return map[string]any{"pod": map[string]any{
			"namespace": pod.Namespace, "labels": orEmpty(pod.Labels), "annotations": orEmpty(pod.Annotations),
			namespaceLabels: orEmpty(ofNamespace)}}
	})}
}

func nodeSubject(node *v1.Node) *subject {
	return &subject{node.Labels, nil, sync.OnceValue(func() map[string]any {
		return map[string]any{"node": map[string]any{"name": node.Name, "labels": orEmpty(node.Labels)}}
	})}
}

// orEmpty returns an empty map for nil, which CEL cannot read.
func orEmpty(labels map[string]string) map[string]string {
	if labels == nil {
		return map[string]string{}
	}
	return labels
}

// on evaluates the expression for a subject.
func (e *expression) on(s *subject) (bool, error) {
	result, _, err := e.program.Eval(s.input())
	if err != nil {
		return false, errors.New(oneLine(err.Error()))
	}
	return result.Value() == true, nil
}

// oneLine drops the drawing of the place that a compiler's message has below it.
func oneLine(message string) string {
	var lines []string
	for line := range strings.Lines(message) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "|") {
			lines = append(lines, strings.TrimPrefix(line, "ERROR: <input>:"))
		}
	}
	return strings.Join(lines, "; ")
}
