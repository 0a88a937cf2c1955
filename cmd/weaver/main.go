// Command weaver lists, explains and operates the tasks of a Weaver store.
package main

import "github.com/goweaver/weaver/cli"

func main() { cli.Main(cli.App{}) }
