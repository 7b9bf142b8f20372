# Small transactions of a database: four pages of its file are changed in the page cache, and a record of its log is
# made durable. The pages are written back later, by the kernel.
set $filesize=1g

define fileset name=data,path=$dir,size=$filesize,entries=1,prealloc=100
define fileset name=log,path=$dir,size=16m,entries=1,prealloc=100

define process name=database,instances=1
{
  thread name=client,instances=4
  {
    flowop openfile name=opendata,filesetname=data,fd=1
    flowop write name=pages,fd=1,iosize=4k,random,iters=4
    flowop closefile name=closedata,fd=1
    flowop openfile name=openlog,filesetname=log,fd=2
    flowop write name=record,fd=2,iosize=4k,random
    flowop fsync name=commit,fd=2
    flowop closefile name=closelog,fd=2
  }
}

run 12
