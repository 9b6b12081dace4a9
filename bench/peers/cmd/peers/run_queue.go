// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

func measureQueue(o *options, _ []side, self string, results table) error {
	for range o.rounds {
		// Google Benchmark's own CSV: name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,...
		cmd := exec.Command(o.program("work_queue_bench"), "--benchmark_format=csv")
		cmd.Stderr = nil // It warns there of CPU scaling and load.
		output, err := cmd.Output()
		if err != nil {
			return err
		}
		rows, err := csv.NewReader(strings.NewReader(string(output))).ReadAll()
		if err != nil {
			return err
		}
		for _, row := range rows[1:] {
			name := strings.TrimSuffix(strings.TrimPrefix(row[0], "BM_"), "/process_time")
			if err := addRate(results, name, ours, row[6]); err != nil {
				return err
			}
		}

		cmd = exec.Command(self, "queue")
		cmd.Stderr = os.Stderr
		if output, err = cmd.Output(); err != nil {
			return err
		}
		for _, line := range strings.Split(strings.TrimSpace(string(output)), "\n") {
			name, rate, _ := strings.Cut(line, " ")
			if err := addRate(results, name, theirs, rate); err != nil {
				return err
			}
		}
	}
	return nil
}

func addRate(results table, name, side, text string) error {
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", name, side, err)
	}
	results.add("queue: "+name, side, rate/1e6)
	return nil
}
