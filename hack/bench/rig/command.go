package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/klog/v2"
)

// Main is the main function of a benchmark: it parses the flags that the program has declared, measures until that ends
// or is interrupted, and writes the results that there are, even if a later run has failed. The first line of about
// says what is measured.
func Main(about string, measure func(ctx context.Context, out io.Writer) (results any, err error)) {
	json := flag.String("json", "", "write the figures as JSON to this file")
	name := filepath.Base(os.Args[0])
	flag.Usage = func() {
		_, _ = fmt.Fprintf(flag.CommandLine.Output(), "%s %s\n\nFlags:\n", name, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	// What libraries log, such as that a watch ends with its control plane, is no result.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *json, measure); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, json string,
	measure func(context.Context, io.Writer) (any, error)) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	session, err := Begin()
	if err != nil {
		return err
	}
	var results any
	err = Catch(func() {
		var failed error
		results, failed = measure(ctx, out)
		Fail(failed)
	})
	if results == nil {
		return err
	}
	return errors.Join(err, session.End(out, json, results))
}

// Progress tells how far a benchmark is, on standard error.
func Progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// List declares a flag that takes values separated by commas, and may be repeated.
func List[T any](name string, value []T, usage string, parse func(string) (T, error)) *[]T {
	if len(value) > 0 {
		usage += fmt.Sprintf(" (default %v)", value)
	}
	var given []T
	flag.Func(name, usage, func(text string) error {
		parsed, err := parseList(text, parse)
		given = append(given, parsed...)
		value = given
		return err
	})
	return &value
}

func parseList[T any](text string, parse func(string) (T, error)) ([]T, error) {
	var list []T
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		v, err := parse(part)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// Text parses a value of a list that is taken as it is.
func Text(text string) (string, error) { return text, nil }

// Count declares a flag that takes a whole number from 1.
func Count(name string, value int, usage string) *int {
	flag.Func(name, fmt.Sprintf("%s, 1 and up (default %d)", usage, value), func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return errors.New("want a whole number from 1")
		}
		value = n
		return nil
	})
	return &value
}

// Named is what a flag can choose by its name.
type Named interface {
	// Describe returns the name, and what a user should know.
	Describe() (name, description string)
}

// Some declares a flag that chooses among what has a name. Without it all are chosen.
func Some[T Named](name string, all []T, usage string) *[]T {
	for _, one := range all {
		itsName, description := one.Describe()
		usage += fmt.Sprintf("\n  %-22s%s", itsName, description)
	}
	chosen := all
	flag.Func(name, usage+"\n(default: all)", func(text string) error {
		var err error
		chosen, err = choose(text, all)
		return err
	})
	return &chosen
}

func choose[T Named](text string, all []T) ([]T, error) {
	var names []string
	for _, one := range all {
		name, _ := one.Describe()
		names = append(names, name)
	}
	seen := map[string]bool{}
	return parseList(text, func(name string) (T, error) {
		i := slices.Index(names, name)
		switch {
		case i < 0:
			return *new(T), fmt.Errorf("%q is unknown; want some of %s", name, strings.Join(names, ", "))
		case seen[name]:
			return *new(T), fmt.Errorf("%q is named twice", name)
		}
		seen[name] = true
		return all[i], nil
	})
}
