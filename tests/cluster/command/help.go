// SPDX-License-Identifier: Apache-2.0

package main

const help = `A real Kubernetes control plane on this machine: etcd, kube-apiserver, kube-controller-manager,
kube-scheduler, and kwok, which simulates the kubelets of any number of GPU nodes.

  cluster build [--real-node]       build the programs into the cache (about 7 minutes, once),
                                    those of a real node too (3 minutes more)
  cluster up [--name N] [flags]     start a cluster, or its dead processes; builds what is missing
      --feature-gates LIST          of API server, controller manager and scheduler, for a new cluster
      --runtime-config LIST         of the API server, for a new cluster
      --scheduler-lease SECONDS     duration of the scheduler's lease (3 or more), for a new cluster
      --audit USER                  log what USER asks the API server for, for a new cluster
      --real-node                   with one node, real-0, that runs containers; needs root, for a new cluster
      --real-gpus G                 its nvidia.com/gpu, only a number (default 8)
  cluster down [--name N | --all]   stop it and remove all it wrote
  cluster status [--name N]         show processes (all clusters without --name);
                                    exit status 1 when one is dead or no cluster is there
  cluster nodes COUNT [flags]       make it COUNT kwok nodes and wait until pods fit on them;
                                    adds the missing, removes the surplus (highest numbers first)
      --gpus G                      nvidia.com/gpu of each (default 8, 0 for none)
      --prefix P                    names are P-0, P-1, ... (default node); other prefixes stay as they are
      --label KEY=VALUE             set on each of them; may be repeated
      --name N                      the cluster
  cluster load-image FILE [--name N]
                                    give the real node a container image, an archive of docker or OCI
  cluster make-image FILE IMAGE [flags] LAYER...
                                    write such an archive; IMAGE is REGISTRY/NAME:TAG, for example localhost/train:1;
                                    a LAYER is a tar file, or FOLDER=/PATH, all of which becomes root's
      --env KEY=VALUE               may be repeated; so may --entrypoint, once a word
      --user U, --workdir D, --entrypoint WORD
  cluster node-exec [--name N] -- COMMAND...
                                    run a command of this machine on the real node: ip, iptables, ctr ...
  cluster node-net [--name N] cut | heal | [delay MS] [loss PERCENT]
                                    disturb the network between the real node and the machine, both ways, or heal
                                    it; pods of the node still reach each other
  cluster pod-log POD [flags]       print the path of the file that is the pod's log, of all its containers;
                                    a line is "2026-01-02T03:04:05.678901234Z stdout F text"
      --namespace NS                the pod's (default default)
      --name N                      the cluster
  cluster audit [--name N]          print each right that the user of up --audit used, "VERB GROUP/RESOURCE", and after
                                    "forbidden" those that it lacked
  cluster kubeconfig [--name N]     print the path of the kubeconfig
  cluster kubectl [--name N] -- ARGS...
                                    run kubectl on the cluster
  cluster help                      this text

The default name is "grus". Several clusters run side by side on free ports, also with real nodes.

What the kwok nodes play (annotations may be set at any time, e.g. with kubectl annotate):
  a bound pod turns Running and Ready, also one of a Job, and stays so
  pod   grus.test/outcome=succeed   turns Succeeded, its containers exit 0
  pod   grus.test/outcome=fail      turns Failed, its containers exit 1
  pod   grus.test/exit-code=N       ends or crashes with exit code N
  pod   grus.test/ready=false       runs but is not Ready, until the annotation is gone or "true"
  pod   grus.test/waiting=REASON    does not start until it is gone, for that reason (or "REASON: message")
  pod   grus.test/crash=N           crashes and is started again in place, until it was started again N times
  pod   grus.test/stop-seconds=N    takes that long to stop, but not longer than its grace
  node  grus.test/ready=false       is not Ready, until the annotation is gone or "true"

Environment:
  GRUS_CACHE    programs built once     (default ${XDG_CACHE_HOME:-$HOME/.cache}/grus)
  GRUS_STATE    folders of the clusters (default /tmp/grus-cluster-UID)
`
