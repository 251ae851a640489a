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

// The variables of expressions.
const (
	podVariable     = "pod"
	nodeVariable    = "node"
	namespaceLabels = "namespaceLabels"
)

// environments holds the CEL environments of expressions on pods and on nodes. They are made when they are needed
// first: a scheduler without policies needs none.
var environments = sync.OnceValues(func() (map[string]*cel.Env, error) {
	text := apiservercel.NewMapType(apiservercel.StringType, apiservercel.StringType, -1)
	kinds := map[string]map[string]*apiservercel.DeclType{
		podVariable:  {"namespace": apiservercel.StringType, "labels": text, "annotations": text, namespaceLabels: text},
		nodeVariable: {"name": apiservercel.StringType, "labels": text},
	}
	made := map[string]*cel.Env{}
	for variable, types := range kinds {
		fields := map[string]*apiservercel.DeclField{}
		for name, t := range types {
			fields[name] = apiservercel.NewDeclField(name, t, true, nil, nil)
		}
		object := apiservercel.NewObjectType("berth."+variable, fields)
		set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
			IntroducedVersion: version.MajorMinor(1, 0),
			EnvOptions:        []cel.EnvOption{cel.Variable(variable, object.CelType())},
			DeclTypes:         []*apiservercel.DeclType{object},
		})
		if err != nil {
			return nil, fmt.Errorf("making the environment of expressions on %ss: %w", variable, err)
		}
		made[variable] = set.StoredExpressionsEnv()
	}
	return made, nil
})

// expression is a compiled expression that yields true or false.
type expression struct {
	program cel.Program
	// readsNamespaces is set if it may read the labels of the pod's namespace.
	readsNamespaces bool
}

// compile compiles an expression on the variable. Errors name the place in the expression.
func compile(variable, text string) (*expression, error) {
	envs, err := environments()
	if err != nil {
		return nil, err
	}
	env := envs[variable]
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
	// fields returns what expressions read, and input holds it once one has asked for it.
	fields func() map[string]any
	input  map[string]any
}

func podSubject(pod *v1.Pod, ofNamespace map[string]string) *subject {
	return &subject{labels: pod.Labels, ofNamespace: ofNamespace, fields: func() map[string]any {
		return map[string]any{podVariable: map[string]any{
			"namespace": pod.Namespace, "labels": orEmpty(pod.Labels), "annotations": orEmpty(pod.Annotations),
			namespaceLabels: orEmpty(ofNamespace)}}
	}}
}

func nodeSubject(node *v1.Node) *subject {
	return &subject{labels: node.Labels, fields: func() map[string]any {
		return map[string]any{nodeVariable: map[string]any{"name": node.Name, "labels": orEmpty(node.Labels)}}
	}}
}

// on evaluates the expression for a subject.
func (e *expression) on(s *subject) (bool, error) {
	if s.input == nil {
		s.input = s.fields()
	}
	result, _, err := e.program.Eval(s.input)
	if err != nil {
		return false, errors.New(oneLine(err.Error()))
	}
	yes, ok := result.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the expression yields %s, want bool", result.Type().TypeName())
	}
	return yes, nil
}

func orEmpty(labels map[string]string) map[string]string {
	if labels == nil {
		return map[string]string{}
	}
	return labels
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
