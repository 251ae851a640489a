# A week of jobs for `berth replay --mode time`, in the CSV format that its help describes. Every awk makes the same trace:
#
#     awk -v seed=1 -v pods=100000 -v days=6.5 -v hours=10 -f hack/bench/week/jobs.awk > jobs.csv
#
# pods is how many arrive, at random over so many days; hours is how long one runs in the mean. With the values above the 5,000
# nodes of nodes.csv are asked for about 70% of their GPUs.

# random is Park and Miller's generator: awks differ in their own.
function random() { s = (s * 16807) % 2147483647; return s / 2147483647 }

BEGIN {
  s = seed
  print "name,arrival,duration,pods,cpu_milli,memory_mib,gpus,gpu_milli,gang,priority,spot"
  for (n = 0; n < pods; n += size) {
    t += -log(1 - random()) * days * 86400 / pods * 1.29 # a job has 1.29 pods in the mean
    kind = random(); size = 1; gpus = 1; milli = ""; gang = ""; priority = 0
    if (kind < 0.15) gpus = 0
    else if (kind < 0.35) milli = 100 * (1 + int(random() * 8))
    else if (kind < 0.42) gpus = 8
    else if (kind < 0.50) { gpus = 4; size = 2 ^ int(1 + random() * 3); gang = "true" }
    else if (kind < 0.60) { gpus = 2; priority = 100 }
    share = gpus ? gpus : 2
    printf "job-%d,%d,%d,%d,%d,%d,%d,%s,%s,%d,%s\n", ++job, t, 180 - log(1 - random()) * hours * 3600, size, \
      1000 * share * (1 + int(random() * 6)), 4096 * share * (1 + int(random() * 4)), gpus, milli, gang, priority, \
      random() < 0.3 ? "tolerate" : ""
  }
}
