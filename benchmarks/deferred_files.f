# Small files that are written and soon removed, 500 a second and client at most. Nothing is made durable by the load.
set $nfiles=20000

define fileset name=files,path=$dir,size=4k,entries=$nfiles,dirwidth=100,prealloc=50

define process name=spool,instances=1
{
  thread name=client,instances=4
  {
    flowop createfile name=create,filesetname=files,fd=1
    flowop writewholefile name=write,fd=1,iosize=4k
    flowop closefile name=close,fd=1
    flowop deletefile name=delete,filesetname=files
    flowop delay name=think,value=0.002
  }
}

run 10
