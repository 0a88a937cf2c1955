var e=null;try{e=localStorage.getItem("weaver.theme")}catch{}(e==="dark"||e==="light")&&document.documentElement.classList.add(e);
